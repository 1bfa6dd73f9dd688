/** A document as it is kept. */
export interface StoredDocument {
  /** Above 0, one more with every change. */
  readonly revision: number
  readonly body: string
}

/** Small documents that several processes change together, each by what it has seen. */
export interface DocumentTable {
  get(name: string): Promise<StoredDocument | undefined>
  /**
   * Puts a document in the place of the one with `revision`, 0 where there is none yet. False when another one is there: nothing
   * was changed then.
   */
  put(name: string, body: string, revision: number): Promise<boolean>
}
