import { type BackoffOptions, backoffDelayMs, resolveBackoff } from './backoff.ts'
import { invalidOption, requireInteger, requireKnown } from './option-range.ts'
import { RuntimeError } from './runtime-error.ts'
import type { Random, Sleep } from './system.ts'

/** Passed to the operation. */
export interface RetryAttempt {
  /** 0 for the first call, 1 for the first retry. */
  readonly attempt: number
  /** The signal of {@link retry}, to pass on to what the operation calls. */
  readonly signal: AbortSignal | undefined
}

/** A failed call that will be retried. */
export interface RetryNotice {
  /** Number of the failed call; 0 for the first. */
  readonly attempt: number
  /** Its error. */
  readonly error: unknown
  /** Delay before the retry. */
  readonly delayMs: number
}

/** Options of {@link retry}. */
export interface RetryOptions extends BackoffOptions {
  /** Source of the jitter. */
  readonly random: Random
  /** Waits between calls; must reject when its signal aborts. */
  readonly sleep: Sleep
  /**
   * Maximum number of retries after the first call: 5 retries are up to 6 calls. 0 or more, or Infinity. Default: 5.
   */
  readonly maxRetries?: number | undefined
  /** Stops retrying: no further call is made, and a wait ends immediately. */
  readonly signal?: AbortSignal | undefined
  /** Whether to retry; called after every failure, including the last. Default: always. */
  readonly shouldRetry?: ((error: unknown, attempt: number) => boolean) | undefined
  /**
   * The delay requested by the other side, in milliseconds from now; undefined if none. The retry is never earlier; it
   * is later if the backoff is longer. 0 and below request nothing; Infinity means never and stops retrying; NaN is an
   * error.
   */
  readonly retryAfterMs?: ((error: unknown) => number | undefined) | undefined
  /** Called for every failure that is retried, before the wait; for logs and metrics. */
  readonly onRetry?: ((notice: RetryNotice) => void) | undefined
}

const OPTIONS: readonly (keyof RetryOptions)[] = [
  'baseMs',
  'capMs',
  'random',
  'sleep',
  'maxRetries',
  'signal',
  'shouldRetry',
  'retryAfterMs',
  'onRetry',
]

/** Default of `maxRetries`. */
export const DEFAULT_MAX_RETRIES = 5

/**
 * All calls failed and no retry is left. `lastError` is the error of the last call; it is also the `cause`. Detect it
 * by its code, `SLUICE_RUNTIME_RETRIES_EXHAUSTED`.
 */
export class RetriesExhausted extends RuntimeError {
  override readonly name = 'RetriesExhausted'
  /** Calls made, including the first. */
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
 * Calls `operation` until it succeeds, with exponential backoff (see {@link backoffDelayMs}).
 *
 * Rejects with {@link RetriesExhausted} if the last retry failed. Rejects with the operation's own error if
 * `shouldRetry` is false or no retry is allowed (`maxRetries: 0`); with `signal.reason` if the signal aborts; with
 * `SLUICE_RUNTIME_INVALID_OPTION`, before the first call, for an option out of range. Calls never overlap. An abort
 * during a call takes effect when that call ends; pass the signal on to end the call as well. A call that succeeds
 * counts, even if the signal aborted meanwhile.
 */
export async function retry<T>(
  operation: (attempt: RetryAttempt) => T | PromiseLike<T>,
  options: RetryOptions,
): Promise<T> {
  requireKnown(options, OPTIONS)
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

/** Applies the default. Throws `SLUICE_RUNTIME_INVALID_OPTION` for a number out of range. */
function resolveMaxRetries(maxRetries: number = DEFAULT_MAX_RETRIES): number {
  if (maxRetries === Number.POSITIVE_INFINITY) return maxRetries
  return requireInteger('maxRetries', maxRetries, { min: 0, max: Number.MAX_SAFE_INTEGER })
}

function delayBeforeNext(error: unknown, attempt: number, options: RetryOptions): number {
  const { random, baseMs, capMs } = options
  const backoffMs = backoffDelayMs(attempt, random, { baseMs, capMs })
  const askedMs = options.retryAfterMs?.(error) ?? 0
  if (Number.isNaN(askedMs)) throw invalidOption('retryAfterMs(error)', askedMs, 'a number, or undefined')
  return Math.max(backoffMs, askedMs)
}
