/** Whatever can tell of changes: a change feed, a notifier. */
export interface HintSource {
  watch(changed: () => void, lost: (error: unknown) => void): Promise<() => Promise<void>>
}

/** Who is told. */
export interface HintListener {
  /** Something was changed. */
  readonly changed: () => void
  /** A source is being watched from now on; what came before was not heard. */
  readonly begun: () => void
  /** Hints of a source may be missing, or it cannot be watched now. */
  readonly lost: (error: unknown) => void
}

/** Sources of hints, each watched as soon as that is possible. */
export class HintSources {
  readonly #listener: HintListener
  readonly #watched = new Map<HintSource, Promise<(() => Promise<void>) | undefined>>()
  /** Those that could not be watched at the last try, which is told once. */
  readonly #failing = new Set<HintSource>()
  #isClosed = false

  constructor(listener: HintListener) {
    this.#listener = listener
  }

  /** Watches a source unless it is watched already, or was tried and is not decided yet. */
  watch(source: HintSource): void {
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

  /** Rejects also when the source throws. */
  async #begin(source: HintSource): Promise<() => Promise<void>> {
    const { changed, lost } = this.#listener
    return await source.watch(
      () => void (this.#isClosed || changed()),
      (error) => void (this.#isClosed || lost(error)),
    )
  }
}
