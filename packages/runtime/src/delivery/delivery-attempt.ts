import type { Sleep } from '../system.ts'

/** What one try of a delivery is given. */
export interface DeliveryAttempt<T> {
  readonly message: T
  /** The same for every try of this message. */
  readonly idempotencyKey: string
  /** Tries that failed before this one, also before a restart. */
  readonly tries: number
  /** Aborts when the try takes too long and when the queue is closed. */
  readonly signal: AbortSignal
}

/** How long a try may take, and what ends it early. */
export interface AttemptLimits {
  readonly timeoutMs: number
  readonly sleep: Sleep
  /** Aborts when the queue is closed. */
  readonly closing: AbortSignal
}

/**
 * Runs one try. Rejects with what the try failed with; with an error of name `TimeoutError` when it took too long; with the
 * reason of `closing` when that aborts. In the last two cases at once, also when the try goes on in spite of its signal.
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
    // The try has ended before.
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
