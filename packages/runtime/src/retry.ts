import { type BackoffOptions, backoffDelayMs, resolveBackoff } from './backoff.ts'
import { RuntimeError } from './errors.ts'
import { invalidOption, requireInteger } from './option-range.ts'
import type { Random, Sleep } from './system.ts'

/** What the operation is told about the call. */
export interface RetryAttempt {
  /** 0 for the first call, 1 for the first retry. */
  readonly attempt: number
  /** The signal given to {@link retry}, to pass on to what the operation calls. */
  readonly signal: AbortSignal | undefined
}

/** A call that failed and will be retried. */
export interface RetryNotice {
  /** The call that failed; 0 for the first. */
  readonly attempt: number
  /** What it failed with. */
  readonly error: unknown
  /** How long the wait before the retry will be. */
  readonly delayMs: number
}

/** How often to retry, how long to wait, and when to give up. */
export interface RetryOptions extends BackoffOptions {
  /** Source of the jitter. */
  readonly random: Random
  /** Waits between calls; must reject as soon as its signal aborts. */
  readonly sleep: Sleep
  /** Most retries after the first call: 5 retries are up to 6 calls. 0 or more, or Infinity. Default: 5. */
  readonly maxRetries?: number | undefined
  /** Ends the retrying: no further call is made and a wait ends at once. */
  readonly signal?: AbortSignal | undefined
  /** Whether a retry can help; asked after every failure, the last included. Default: always. */
  readonly shouldRetry?: ((error: unknown, attempt: number) => boolean) | undefined
  /**
   * The wait that the other side asked for, in milliseconds from now, or undefined when it asked for none. The retry
   * is never earlier; it is later when the backoff is longer. Zero and less ask for nothing; Infinity means never and
   * ends the retrying; NaN is an error.
   */
  readonly retryAfterMs?: ((error: unknown) => number | undefined) | undefined
  /** Called for every failure that is retried, before the wait; for logs and counters. */
  readonly onRetry?: ((notice: RetryNotice) => void) | undefined
}

/** The default of `maxRetries`. */
export const DEFAULT_MAX_RETRIES = 5

/**
 * Every call failed and no retry is left. `lastError` is what the last call failed with, unchanged; it is also the
 * `cause`. Recognise it by its code, `SLUICE_RUNTIME_RETRIES_EXHAUSTED`.
 */
export class RetriesExhausted extends RuntimeError {
  override readonly name = 'RetriesExhausted'
  /** Calls made, the first included. */
  readonly calls: number
  readonly lastError: unknown

  constructor(calls: number, lastError: unknown) {
    super('SLUICE_RUNTIME_RETRIES_EXHAUSTED', {
      received: `${calls} failures, the last: ${lastError instanceof Error ? lastError.message : String(lastError)}`,
      expected: 'one call to succeed',
      action: 'See "lastError". Raise maxRetries if the failure lasts longer than the waits.',
      cause: lastError,
    })
    this.calls = calls
    this.lastError = lastError
  }
}

/**
 * Calls `operation` until it succeeds, waiting longer after each failure (see {@link backoffDelayMs}).
 *
 * Rejects with {@link RetriesExhausted} when the last retry failed too. Rejects with the operation's own error, unchanged,
 * when a retry cannot help or none is allowed (`maxRetries: 0`); with `signal.reason` when the signal aborts; with
 * `SLUICE_RUNTIME_INVALID_OPTION`, before the first call, when an option is out of range. Calls never overlap. An abort
 * during a call takes effect when that call ends; pass the signal on to end the call as well. A call that succeeds
 * counts, even when the signal aborted meanwhile.
 */
export async function retry<T>(
  operation: (attempt: RetryAttempt) => T | PromiseLike<T>,
  options: RetryOptions,
): Promise<T> {
  const { signal, sleep } = options
  const maxRetries = resolveMaxRetries(options.maxRetries)
  resolveBackoff(options)
  for (let attempt = 0; ; attempt++) {
    signal?.throwIfAborted()
    try {
      return await operation({ attempt, signal })
    } catch (error) {
      signal?.throwIfAborted()
      if (options.shouldRetry?.(error, attempt) === false) throw error
      if (attempt >= maxRetries) throw attempt === 0 ? error : new RetriesExhausted(attempt + 1, error)
      const delayMs = delayBeforeNext(error, attempt, options)
      if (delayMs === Number.POSITIVE_INFINITY) throw error
      options.onRetry?.({ attempt, error, delayMs })
      await sleep(delayMs, signal)
    }
  }
}

/** Fills in the default and throws `SLUICE_RUNTIME_INVALID_OPTION` when the number is out of its range. */
function resolveMaxRetries(maxRetries: number = DEFAULT_MAX_RETRIES): number {
  if (maxRetries === Number.POSITIVE_INFINITY) return maxRetries
  return requireInteger('maxRetries', maxRetries, { min: 0, max: Number.MAX_SAFE_INTEGER })
}

function delayBeforeNext(error: unknown, attempt: number, options: RetryOptions): number {
  const backoffMs = backoffDelayMs(attempt, options.random, options)
  const askedMs = options.retryAfterMs?.(error) ?? 0
  if (Number.isNaN(askedMs)) throw invalidOption('retryAfterMs(error)', askedMs, 'a number, or undefined')
  return Math.max(backoffMs, askedMs)
}
