import type { Sleep } from '../system.ts'

/** Passed to `deliver` for one attempt. */
export interface DeliveryAttempt<T> {
  readonly message: T
  /** The same for every attempt of this message. */
  readonly idempotencyKey: string
  /** Failed attempts before this one, including those before a restart. */
  readonly tries: number
  /** Aborts on timeout and when the queue is closed. */
  readonly signal: AbortSignal
}

/** Options of {@link runAttempt}. */
export interface AttemptLimits {
  readonly timeoutMs: number
  readonly sleep: Sleep
  /** Aborts when the queue is closed. */
  readonly closing: AbortSignal
}

/**
 * Runs one attempt. Rejects with its error; with an error named `TimeoutError` on timeout; with the reason of `closing`
 * if that aborts. In the last two cases immediately, even if the attempt ignores its signal.
 */
export async function runAttempt(
  run: (signal: AbortSignal) => Promise<void>,
  { timeoutMs, sleep, closing }: AttemptLimits,
): Promise<void> {
  closing.throwIfAborted()
  const attempt = new AbortController()
  const ended = new AbortController()
  const onClosing = (): void => attempt.abort(closing.reason)
  closing.addEventListener('abort', onClosing, { once: true })
  sleep(timeoutMs, ended.signal).then(
    () => attempt.abort(new DOMException(`No answer in ${timeoutMs} ms`, 'TimeoutError')),
    // The attempt has already ended.
    () => undefined,
  )
  const aborted = new Promise<never>((_, reject) => {
    attempt.signal.addEventListener('abort', () => reject(attempt.signal.reason), { once: true })
  })
  try {
    await Promise.race([run(attempt.signal), aborted])
  } finally {
    closing.removeEventListener('abort', onClosing)
    ended.abort()
  }
}

/** A FIFO semaphore: limits the number of concurrent attempts. */
export class DeliverySlots {
  readonly #most: number
  readonly #waiters: (() => void)[] = []
  #taken = 0

  constructor(most: number) {
    this.#most = most
  }

  /** Attempts in flight. */
  get taken(): number {
    return this.#taken
  }

  /** Waits for a free slot. Rejects with the reason of `signal` if that aborts first. */
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
        this.#waiters.splice(this.#waiters.indexOf(enter), 1)
        reject(signal.reason)
      }
      this.#waiters.push(enter)
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }

  /** Releases a slot. */
  free(): void {
    const next = this.#waiters.shift()
    // The slot passes directly to the next waiter.
    if (next === undefined) this.#taken--
    else next()
  }
}
