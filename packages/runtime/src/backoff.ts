import { invalidOption, requireInteger, requireKnown, requireNumber } from './option-range.ts'
import { describeValue, RuntimeError } from './runtime-error.ts'
import type { Random } from './system.ts'

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
