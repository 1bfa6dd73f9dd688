import { describeValue, RuntimeError } from './errors.ts'
import { invalidOption, requireInteger, requireNumber } from './option-range.ts'
import type { Random } from './system.ts'

/** How long to wait between calls. */
export interface BackoffOptions {
  /** The wait after the first failure, before jitter; zero or more. Zero means no wait at all. Default: 2000. */
  readonly baseMs?: number | undefined
  /** No wait is longer than this; at least `baseMs`, finite. Default: 60000. */
  readonly capMs?: number | undefined
}

const DEFAULT_BASE_MS = 2000
const DEFAULT_CAP_MS = 60_000
const LEAST_JITTER = 0.75
const JITTER_SPAN = 0.5

// 2 to the 1024 is infinite, and a base of zero times infinity is not a number.
const GREATEST_EXPONENT = 1023

/**
 * The wait before the next call, in milliseconds, not rounded: `min(capMs, baseMs x 2^attempt x jitter)`.
 *
 * `attempt` counts the failures before this one: 0 after the first failure. The jitter is uniform in [0.75, 1.25]. The
 * cap applies last, so no wait is ever longer than `capMs`. Callers that reached the cap wait equally long; they stay
 * apart because their earlier waits differed. No `attempt` is too large.
 *
 * Takes exactly one number from `random`. Throws `SLUICE_RUNTIME_INVALID_OPTION` for options out of range and
 * `SLUICE_RUNTIME_INVALID_PORT` for a random number that is not in [0, 1].
 */
export function backoffDelayMs(attempt: number, random: Random, options: BackoffOptions = {}): number {
  requireInteger('attempt', attempt, { min: 0, max: Number.MAX_SAFE_INTEGER })
  const { baseMs, capMs } = resolveBackoff(options)
  const grownMs = baseMs * 2 ** Math.min(attempt, GREATEST_EXPONENT)
  return Math.min(capMs, grownMs * (LEAST_JITTER + JITTER_SPAN * draw(random)))
}

/** Fills in the defaults and throws `SLUICE_RUNTIME_INVALID_OPTION` when an option is out of its range. */
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
