import type { Random, Sleep } from './clock-and-random.ts'
import { invalidOption, requireInteger, requireKnown, requireNumber } from './option-range.ts'
import { describeValue, RuntimeError } from './runtime-error.ts'

/** Options of {@link backoffDelayMs}. */
export interface BackoffOptions {
  /** Delay after the first failure, before jitter; 0 or more. 0 means no delay. Default: 2000. */
  readonly baseMs?: number | undefined
  /** Maximum delay; at least `baseMs`, finite. Default: 60000. */
  readonly capMs?: number | undefined
}

const DEFAULT_BASE_MS = 2000
const DEFAULT_CAP_MS = 60_000
const LEAST_JITTER = 0.75
const JITTER_SPAN = 0.5

// 2^1024 is Infinity, and 0 times Infinity is NaN.
const GREATEST_EXPONENT = 1023

/**
 * The delay before the next attempt, in milliseconds, not rounded: `min(capMs, baseMs x 2^attempt x jitter)`.
 *
 * `attempt` counts the previous failures: 0 after the first failure. The jitter is uniform in [0.75, 1.25]. The cap
 * applies last, so no delay is longer than `capMs`. Callers that reached the cap wait equally long; they stay spread
 * out because their earlier delays differed. Any `attempt` is accepted.
 *
 * Calls `random` exactly once. Throws `SLUICE_RUNTIME_INVALID_OPTION` for options out of range and
 * `SLUICE_RUNTIME_INVALID_PORT` for a random number outside [0, 1].
 */
export function backoffDelayMs(attempt: number, random: Random, options: BackoffOptions = {}): number {
  requireKnown(options, ['baseMs', 'capMs'])
  requireInteger('attempt', attempt, { min: 0, max: Number.MAX_SAFE_INTEGER })
  const { baseMs, capMs } = resolveBackoff(options)
  const grownMs = baseMs * 2 ** Math.min(attempt, GREATEST_EXPONENT)
  return Math.min(capMs, grownMs * (LEAST_JITTER + JITTER_SPAN * draw(random)))
}

/** Applies the defaults. Throws `SLUICE_RUNTIME_INVALID_OPTION` for an option out of range. */
export function resolveBackoff(options: BackoffOptions): { readonly baseMs: number; readonly capMs: number } {
  const range = { min: 0, max: Number.MAX_SAFE_INTEGER }
  const baseMs = requireNumber('baseMs', options.baseMs ?? DEFAULT_BASE_MS, range)
  const capMs = requireNumber('capMs', options.capMs ?? DEFAULT_CAP_MS, range)
  if (capMs < baseMs) throw invalidOption('capMs', capMs, `at least baseMs, which is ${baseMs}`)
  return { baseMs, capMs }
}

function draw(random: Random): number {
  const value = random()
  if (value >= 0 && value <= 1) return value
  throw new RuntimeError('SLUICE_RUNTIME_INVALID_PORT', {
    received: `${describeValue(value)} from random()`,
    expected: 'a number from 0 to 1',
    action: 'Pass systemRandom, or correct the random source that is passed in.',
  })
}

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
