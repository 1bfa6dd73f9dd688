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
  /** How long a call waits for the store, 1 to 60,000. Default: 50. */
  readonly deadlineMs?: number
  /** How long an urgent batch waits for the store, 1 to 60,000. Default: `deadlineMs`. */
  readonly urgentDeadlineMs?: number
  /** What to answer without the store, for rules that do not say. Default: `open`. */
  readonly failureMode?: FailureMode
  /** Live nodes, this one included, for `local`. Default: 1, also for an answer below 1. */
  readonly nodes?: () => number
  /** Maximum number of keys remembered, and counted, for `local`: 64 to 100,000,000. Default: 100,000. */
  readonly maxLocalKeys?: number
  readonly breaker?: BreakerOptions
  /** Most calls in flight, 1 to 1,000,000. Default: 10,000. Beyond it a call is answered without the store at once. */
  readonly maxPending?: number
  readonly observe?: StoreObserver
  readonly timers?: Timers
  /** The time of answers given without the store. */
  readonly clock?: Clock
  /** Milliseconds that only go on, for deadlines and pauses. Default: `performance.now()`. */
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

/** Throws `SLUICE_INVALID_OPTION` for an option that a fallback store does not have. */
export function checkFallbackOptionNames(options: FallbackStoreOptions): void {
  checkOptionNames(options, TAKER)
  checkSources(options)
}

/** All options with their defaults. Throws `SLUICE_INVALID_OPTION` for one that is out of range. */
export function withDefaults(options: FallbackStoreOptions): Omit<Required<FallbackStoreOptions>, 'observe'> {
  const { breaker = {}, failureMode = 'open', nodes = () => 1 } = options
  const { clock = systemClock, random = systemRandom, timers = systemTimers } = options
  checkOptionNames(breaker, BREAKER_TAKER)
  const deadlineMs = checkWhole('deadlineMs', options.deadlineMs ?? 50, { of: TAKER.name, most: 60_000 })
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
