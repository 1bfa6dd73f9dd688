import type { Sleep } from '../clock.ts'

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
