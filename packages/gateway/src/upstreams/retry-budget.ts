import { SlidingCounter } from '@sluice/runtime'

/** The time that requests and retries are counted over. */
const WINDOW_MS = 10_000

/** Retries that are always allowed within the window: a share of few requests would allow none. */
const LEAST_RETRIES = 10

/**
 * Keeps retries from multiplying the load of an upstream that fails.
 *
 * Invariant: within the last 10 seconds there are at most `max(10, share x requests)` retries. Requests and retries are
 * counted by seconds: one leaves the window 9 to 10 seconds after it came.
 */
export class RetryBudget {
  readonly #requests: SlidingCounter
  readonly #retries: SlidingCounter
  #taken = 0
  #denied = 0

  constructor(nowMs: () => number) {
    this.#requests = new SlidingCounter({ windowMs: WINDOW_MS, nowMs })
    this.#retries = new SlidingCounter({ windowMs: WINDOW_MS, nowMs })
  }

  /** Retries allowed so far. */
  get taken(): number {
    return this.#taken
  }

  /** Retries that the budget did not allow. */
  get denied(): number {
    return this.#denied
  }

  /** Counts a first attempt. */
  countRequest(): void {
    this.#requests.add()
  }

  /** Takes one retry; false if the budget is used up. `share` of 0 allows none. */
  take(share: number): boolean {
    const most = share > 0 ? Math.max(LEAST_RETRIES, Math.floor(share * this.#requests.sum())) : 0
    if (this.#retries.sum() >= most) {
      this.#denied++
      return false
    }
    this.#retries.add()
    this.#taken++
    return true
  }
}
