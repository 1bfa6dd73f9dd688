import type { BackoffOptions } from './backoff.ts'
import { backoffDelayMs, resolveBackoff } from './backoff.ts'
import type { Sleep } from './clock.ts'
import { invalidOption, requireInteger } from './option-range.ts'
import type { Random } from './random.ts'

/** What the operation is told about the try it is making. */
export interface RetryAttempt {
  /** 0 for the first try. */
  readonly attempt: number
  /** The signal given to {@link retry}, to pass on to what the operation calls. */
  readonly signal: AbortSignal | undefined
}

/** A try that failed and will be followed by another. */
export interface RetryNotice {
  /** The try that failed; 0 for the first. */
  readonly attempt: number
  /** What it failed with. */
  readonly error: unknown
  /** How long the wait before the next try will be. */
  readonly delayMs: number
}

/** How often to try, how long to wait, and when to give up. */
export interface RetryOptions extends BackoffOptions {
  /** Source of the jitter. */
  readonly random: Random
  /** Waits between tries; must reject as soon as its signal aborts. */
  readonly sleep: Sleep
  /** How many times the operation is called at most, the first call included; 1 or more, or Infinity. Default 5. */
  readonly maxTries?: number | undefined
  /** Ends the retrying: no further try is made and a wait ends at once. */
  readonly signal?: AbortSignal | undefined
  /** Whether trying again can help. Not asked after the last try. Default: always. */
  readonly shouldRetry?: ((error: unknown, attempt: number) => boolean) | undefined
  /**
   * The wait that the other side asked for, in milliseconds from now, or undefined when it asked for none. The next
   * try is never earlier; it is later when the backoff is longer. Zero and less ask for nothing; Infinity means never
   * and ends the retrying; NaN is an error.
   */
  readonly retryAfterMs?: ((error: unknown) => number | undefined) | undefined
  /** Told of every failure that is followed by another try, before the wait; for logs and counters. */
  readonly onRetry?: ((notice: RetryNotice) => void) | undefined
}

const DEFAULT_MAX_TRIES = 5

/**
 * Calls `operation` until it succeeds, waiting longer after each failure (see {@link backoffDelayMs}).
 *
 * Rejects with the operation's own last error, unchanged, when the tries are used up or another try cannot help; with
 * `signal.reason` when the signal aborts; with `SLUICE_RUNTIME_INVALID_OPTION`, before the first call, when an option
 * is out of range. Calls never overlap. An abort during a call takes effect when that call ends; pass the signal on
 * to end the call as well. A call that succeeds counts, even when the signal aborted meanwhile.
 */
export async function retry<T>(
  operation: (attempt: RetryAttempt) => T | PromiseLike<T>,
  options: RetryOptions,
): Promise<T> {
  const { signal, sleep } = options
  const maxTries = resolveMaxTries(options)
  resolveBackoff(options)
  for (let attempt = 0; ; attempt++) {
    signal?.throwIfAborted()
    try {
      return await operation({ attempt, signal })
    } catch (error) {
      signal?.throwIfAborted()
      if (attempt + 1 >= maxTries) throw error
      if (options.shouldRetry?.(error, attempt) === false) throw error
      const delayMs = delayBeforeNext(error, attempt, options)
      if (delayMs === Number.POSITIVE_INFINITY) throw error
      options.onRetry?.({ attempt, error, delayMs })
      await sleep(delayMs, signal)
    }
  }
}

function resolveMaxTries({ maxTries = DEFAULT_MAX_TRIES }: RetryOptions): number {
  if (maxTries === Number.POSITIVE_INFINITY) return maxTries
  return requireInteger('maxTries', maxTries, { min: 1, max: Number.MAX_SAFE_INTEGER })
}

function delayBeforeNext(error: unknown, attempt: number, options: RetryOptions): number {
  const backoffMs = backoffDelayMs(attempt, options.random, options)
  const askedMs = options.retryAfterMs?.(error) ?? 0
  if (Number.isNaN(askedMs)) throw invalidOption('retryAfterMs(error)', askedMs, 'a number, or undefined')
  return Math.max(backoffMs, askedMs)
}
