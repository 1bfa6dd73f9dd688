/** Tells all nodes that something was changed, where the database cannot. */
export interface Notifier {
  /**
   * Calls `changed` soon after anybody announced. Hints may be lost, and come more than once; `lost` is called when it is known
   * that some may have been. Rejects when it cannot watch now. The function returned ends it.
   */
  watch(changed: () => void, lost: (error: unknown) => void): Promise<() => Promise<void>>
  /**
   * Tells everybody, after a change was committed. Never rejects: false says that nobody was told, and that the nodes will find
   * the change by polling.
   */
  announce(): Promise<boolean>
}
