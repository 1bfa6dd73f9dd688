import { SluiceError } from '../../errors.ts'
import { checkOptionNames, checkSources, checkWhole, type OptionTaker } from '../../options/known-options.ts'
import type { FailureMode } from '../../rule/rule.ts'
import type { Clock, Timers } from '../../system/clock-and-timers.ts'
import { systemClock, systemMonotonicMs, systemTimers } from '../../system/clock-and-timers.ts'
import type { Random } from '../../system/random.ts'
import { systemRandom } from '../../system/random.ts'
import type { StoreObserver } from '../store-event.ts'
import type { BreakerOptions } from './breaker.ts'

/** Options of `fallbackStore`. */
export interface FallbackStoreOptions {
  /** Deadline of a call to the store, 1 to 60,000 milliseconds. Default: 50. */
  readonly deadlineMs?: number
  /** Deadline of an urgent batch, 1 to 60,000 milliseconds. Default: `deadlineMs`. */
  readonly urgentDeadlineMs?: number
  /** Failure mode of rules that set none. Default: `open`. */
  readonly failureMode?: FailureMode
  /** Number of live nodes including this one, for `local`. Default: 1, also for a result below 1. */
  readonly nodes?: () => number
  /** Maximum number of remembered keys, and of counted keys, for `local`: 64 to 100,000,000. Default: 100,000. */
  readonly maxLocalKeys?: number
  readonly breaker?: BreakerOptions
  /**
   * Maximum number of calls in flight, 1 to 1,000,000. Default: 10,000. Further calls are decided without the store at
   * once.
   */
  readonly maxPending?: number
  readonly observe?: StoreObserver
  readonly timers?: Timers
  /** Clock of decisions without the store. */
  readonly clock?: Clock
  /** A monotonic clock in milliseconds, for deadlines and pauses. Default: `performance.now()`. */
  readonly monotonicMs?: () => number
  readonly random?: Random
}

const TAKER: OptionTaker = {
  name: 'the fallback store',
  options: [
    'deadlineMs',
    'urgentDeadlineMs',
    'failureMode',
    'nodes',
    'maxLocalKeys',
    'breaker',
    'maxPending',
    'observe',
    'timers',
    'clock',
    'monotonicMs',
    'random',
  ],
  example: "{ deadlineMs: 50, failureMode: 'open' }",
}
const BREAKER_TAKER: OptionTaker = {
  name: '"breaker"',
  options: ['failures', 'basePauseMs', 'maxPauseMs'],
  example: '{ failures: 5 }',
}

/** Default of `deadlineMs`. */
export const DEFAULT_DEADLINE_MS = 50

/** Throws `SLUICE_INVALID_OPTION` for an unknown option. */
export function checkFallbackOptionNames(options: FallbackStoreOptions): void {
  checkOptionNames(options, TAKER)
  checkSources(options)
}

/** All options with their defaults. Throws `SLUICE_INVALID_OPTION` for one that is out of range. */
export function withDefaults(options: FallbackStoreOptions): Omit<Required<FallbackStoreOptions>, 'observe'> {
  const { breaker = {}, failureMode = 'open', nodes = () => 1 } = options
  const { clock = systemClock, random = systemRandom, timers = systemTimers } = options
  checkOptionNames(breaker, BREAKER_TAKER)
  const deadlineMs = checkWhole('deadlineMs', options.deadlineMs ?? DEFAULT_DEADLINE_MS, {
    of: TAKER.name,
    most: 60_000,
  })
  const { urgentDeadlineMs = deadlineMs } = options
  return {
    deadlineMs,
    urgentDeadlineMs: checkWhole('urgentDeadlineMs', urgentDeadlineMs, { of: TAKER.name, most: 60_000 }),
    failureMode: checkMode(failureMode),
    nodes,
    maxLocalKeys: checkWhole('maxLocalKeys', options.maxLocalKeys ?? 100_000, {
      of: TAKER.name,
      least: 64,
      most: 100_000_000,
    }),
    breaker,
    maxPending: checkWhole('maxPending', options.maxPending ?? 10_000, { of: TAKER.name, most: 1_000_000 }),
    timers,
    clock,
    monotonicMs: options.monotonicMs ?? systemMonotonicMs,
    random,
  }
}

function checkMode(mode: FailureMode): FailureMode {
  if (mode === 'open' || mode === 'closed' || mode === 'local') return mode
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: '"failureMode" of the fallback store cannot be used',
    received: mode,
    expected: "'open', 'closed' or 'local'",
  })
}
