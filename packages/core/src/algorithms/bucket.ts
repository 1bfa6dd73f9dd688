import type { MeterLimit, QueueLimit } from '../rule/limit.ts'
import { flowed, MICROS_PER_UNIT, microsToFlow } from '../rule/rate.ts'
import type { Algorithm, Ask, Correction, State, Verdict } from './algorithm.ts'
import { LATEST, NEVER } from './algorithm.ts'

// State: [level, at] — micro-units in use, and the instant they were counted. A level L at time t has sunk to max(0, L
// - flowed(now - t)). Rounding: what flowed is rounded down, so a call is never admitted too early; because only
// admitted calls write, at most one micro-unit of flow is lost for each, which bounds the error of the rate by 10^-6.
const SIZE = 2

/** However much is charged beyond the limit, the level stays a whole number. */
const LARGEST_LEVEL = Number.MAX_SAFE_INTEGER

/** The level at `now`, which must not be before `at`. */
function levelAt(state: State, limit: MeterLimit | QueueLimit, now: number): number {
  if (state.length === 0) return 0
  const level = state[0]! - flowed(limit.rate, now - state[1]!)
  return level > 0 ? level : 0
}

/** The instant of the state when the clock stands behind it, else `now`: time does not go back. */
function notBefore(state: State, now: number): number {
  return state.length > 0 && state[1]! > now ? state[1]! : now
}

/**
 * The instant at which the stored level has sunk by `microUnits`. Counted from the stored instant, not from now,
 * because that is how the next call will count.
 */
function sunkAt(state: State, limit: MeterLimit | QueueLimit, ask: { now: number; microUnits: number }): number {
  const from = state.length > 0 ? state[1]! : ask.now
  return Math.max(ask.now, from + microsToFlow(limit.rate, ask.microUnits))
}

/** Decides for any limit that is a level flowing off at a constant rate. Returns the level before the charge. */
export function decideMeter(
  state: State,
  limit: MeterLimit | QueueLimit,
  ask: Readonly<Ask>,
  verdict: Verdict,
): number {
  const now = notBefore(state, ask.now)
  const level = levelAt(state, limit, now)
  const { full } = limit
  const after = level + ask.cost * MICROS_PER_UNIT
  verdict.delayMicros = 0
  verdict.mark = 0
  if (after <= full && limit.capacity > 0) {
    verdict.ruling = 'allowed'
    verdict.remaining = Math.floor((full - after) / MICROS_PER_UNIT)
    verdict.retryAt = ask.now
    verdict.resetAt = verdict.freshAt = now + microsToFlow(limit.rate, after)
    verdict.next[0] = after
    verdict.next[1] = now
    verdict.nextLength = SIZE
    return level
  }
  const possible = ask.cost <= limit.capacity && limit.capacity > 0
  const stored = state.length > 0 ? state[0]! : 0
  verdict.ruling = possible ? 'limit' : 'never'
  verdict.remaining = level < full ? Math.floor((full - level) / MICROS_PER_UNIT) : 0
  verdict.resetAt = verdict.freshAt = sunkAt(state, limit, { now, microUnits: stored })
  // Subtracted in this order, every number on the way is whole.
  verdict.retryAt = possible
    ? sunkAt(state, limit, { now, microUnits: stored - (full - ask.cost * MICROS_PER_UNIT) })
    : NEVER
  return level
}

/** Corrects a charge on a level. What has flowed off since the charge is gone and cannot be given back. */
export function correctMeter(
  state: State,
  limit: MeterLimit | QueueLimit,
  correction: Correction,
  verdict: Verdict,
): number {
  const now = notBefore(state, correction.now)
  const level = levelAt(state, limit, now)
  const wanted = correction.units * MICROS_PER_UNIT
  const after =
    wanted >= 0 ? Math.min(LARGEST_LEVEL, level + wanted) : Math.max(0, level - refundable(limit, now, correction))
  verdict.next[0] = after
  verdict.next[1] = now
  verdict.nextLength = SIZE
  verdict.freshAt = now + microsToFlow(limit.rate, after)
  return (after - level) / MICROS_PER_UNIT
}

/**
 * A charge made `elapsed` ago would have lifted the level by at least `cost - flowed(elapsed)` to this day, whatever
 * happened in between; more than that is not owed.
 */
function refundable(limit: MeterLimit | QueueLimit, now: number, { units, charge }: Correction): number {
  if (charge.at === LATEST) return -units * MICROS_PER_UNIT
  const left = charge.cost * MICROS_PER_UNIT - flowed(limit.rate, Math.max(0, now - charge.at))
  return Math.max(0, Math.min(-units * MICROS_PER_UNIT, left))
}

function meter(name: MeterLimit['algorithm']): Algorithm<MeterLimit> {
  return { name, stateSize: () => SIZE, fixedSize: () => true, decide: decideMeter, correct: correctMeter }
}

/** Tokens fill up to a capacity at a constant rate; a call takes its cost in tokens. */
export const tokenBucketAlgorithm: Algorithm<MeterLimit> = meter('token-bucket')

/** Calls pour into a bucket that leaks at a constant rate; what does not fit is denied. */
export const leakyBucketMeterAlgorithm: Algorithm<MeterLimit> = meter('leaky-bucket-meter')

/** The generic cell rate algorithm in its continuous-state form. */
export const gcraAlgorithm: Algorithm<MeterLimit> = meter('gcra')
