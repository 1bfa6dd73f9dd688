const SECONDS = 10
const MS_PER_SECOND = 1000

/** Retries that are always allowed within the window: a share of few requests would allow none. */
const LEAST_RETRIES = 10

/**
 * Keeps retries from multiplying the load of an upstream that fails.
 *
 * Invariant: within the last 10 seconds there are at most `max(10, share x requests)` retries. Requests and retries are
 * counted by seconds: one leaves the window 9 to 10 seconds after it came.
 */
export class RetryBudget {
  /** By second, modulo 10. */
  readonly #requests: number[] = Array.from({ length: SECONDS }, () => 0)
  readonly #retries: number[] = Array.from({ length: SECONDS }, () => 0)
  #second = 0
  #taken = 0
  #denied = 0

  /** Retries allowed so far. */
  get taken(): number {
    return this.#taken
  }

  /** Retries that the budget did not allow. */
  get denied(): number {
    return this.#denied
  }

  /** Counts a first attempt. */
  countRequest(nowMs: number): void {
    this.#requests[this.#placeOf(nowMs)]!++
  }

  /** Takes one retry; false if the budget is used up. `share` of 0 allows none. */
  take(share: number, nowMs: number): boolean {
    const place = this.#placeOf(nowMs)
    const most = share > 0 ? Math.max(LEAST_RETRIES, Math.floor(share * sumOf(this.#requests))) : 0
    if (sumOf(this.#retries) >= most) {
      this.#denied++
      return false
    }
    this.#retries[place]!++
    this.#taken++
    return true
  }

  /** The place of this second; those of seconds that have left the window are cleared. The clock does not go back. */
  #placeOf(nowMs: number): number {
    const second = Math.floor(nowMs / MS_PER_SECOND)
    if (second !== this.#second) {
      const first = Math.max(this.#second + 1, second - SECONDS + 1)
      for (let passed = first; passed <= second; passed++) {
        this.#requests[passed % SECONDS] = 0
        this.#retries[passed % SECONDS] = 0
      }
      this.#second = second
    }
    return second % SECONDS
  }
}

function sumOf(counts: readonly number[]): number {
  let sum = 0
  for (const count of counts) sum += count
  return sum
}
