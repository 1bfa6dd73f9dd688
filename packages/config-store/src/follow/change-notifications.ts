/** A source of change notifications: a change feed, a notifier. */
export interface NotificationSource {
  watch(changed: () => void, lost: (error: unknown) => void): Promise<() => Promise<void>>
}

/** Callbacks of {@link ChangeNotifications}. */
export interface HintListener {
  /** Something has changed. */
  readonly changed: () => void
  /** A source is now being watched. Earlier changes were not noticed. */
  readonly begun: () => void
  /** Notifications of a source may have been lost, or it cannot be watched now. */
  readonly lost: (error: unknown) => void
}

/** Watches sources of change notifications, each as soon as possible. */
export class ChangeNotifications {
  readonly #listener: HintListener
  readonly #watched = new Map<NotificationSource, Promise<(() => Promise<void>) | undefined>>()
  /** Sources that could not be watched at the last attempt; reported once. */
  readonly #failing = new Set<NotificationSource>()
  #isClosed = false

  constructor(listener: HintListener) {
    this.#listener = listener
  }

  /** Watches a source, unless it is already watched or an attempt is in progress. */
  watch(source: NotificationSource): void {
    if (this.#isClosed || this.#watched.has(source)) return
    const { lost } = this.#listener
    this.#watched.set(
      source,
      this.#begin(source).then(
        (end) => {
          this.#failing.delete(source)
          if (!this.#isClosed) this.#listener.begun()
          return end
        },
        (error: unknown) => {
          this.#watched.delete(source)
          if (!this.#isClosed && !this.#failing.has(source)) lost(error)
          this.#failing.add(source)
          return undefined
        },
      ),
    )
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const ends = await Promise.all(this.#watched.values())
    this.#watched.clear()
    await Promise.allSettled(ends.map((end) => end?.()))
  }

  /** An async function, so that an exception becomes a rejection. */
  async #begin(source: NotificationSource): Promise<() => Promise<void>> {
    const { changed, lost } = this.#listener
    return await source.watch(
      () => void (this.#isClosed || changed()),
      (error) => void (this.#isClosed || lost(error)),
    )
  }
}
