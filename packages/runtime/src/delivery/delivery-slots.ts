/** A line for so many places: who comes first gets the next one that is free. */
export class DeliverySlots {
  readonly #most: number
  readonly #line: (() => void)[] = []
  #taken = 0

  constructor(most: number) {
    this.#most = most
  }

  /** How many places are taken. */
  get taken(): number {
    return this.#taken
  }

  /** Takes a place as soon as one is free. Rejects with the reason of `signal` when that aborts first. */
  take(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason)
    if (this.#taken < this.#most) {
      this.#taken++
      return Promise.resolve()
    }
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        signal.removeEventListener('abort', onAbort)
        resolve()
      }
      const onAbort = (): void => {
        this.#line.splice(this.#line.indexOf(enter), 1)
        reject(signal.reason)
      }
      this.#line.push(enter)
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  /** Gives a place back. */
  free(): void {
    const next = this.#line.shift()
    // The place goes from one to the other and is never free in between.
    if (next === undefined) this.#taken--
    else next()
  }
}
