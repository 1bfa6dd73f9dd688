import type { SlidingCounterLimit } from '../rule/limit.ts'
import type { Algorithm, State } from './algorithm.ts'
import { LATEST, NEVER } from './algorithm.ts'

// State: [startAt, previous, current] — the units of the window before, and of the one that starts at startAt.
// The estimate is previous x (rest of the current window / window) + current.

interface Counts {
  startAt: number
  previous: number
  current: number
}

function countsAt(state: State, limit: SlidingCounterLimit, now: number): Counts {
  const window = limit.windowMicros
  if (state.length === 0) return { startAt: Math.floor(now / window) * window, previous: 0, current: 0 }
  // A stored window may have had another length: what began inside ours counts as ours.
  const startAt = Math.floor(Math.max(now, state[0]!) / window) * window
  if (state[0]! >= startAt) return { startAt, previous: state[1]!, current: state[2]! }
  return { startAt, previous: state[0]! >= startAt - window ? state[2]! : 0, current: 0 }
}

/**
 * Units of the window before that count `elapsed` microseconds into this one, rounded up. Exact while units x
 * microseconds are below 2^53, and within a unit beyond. Every answer goes through here, so that they agree to the unit
 * all the same.
 */
function weightedAt(counts: Counts, limit: SlidingCounterLimit, elapsed: number): number {
  return Math.ceil((counts.previous * (limit.windowMicros - elapsed)) / limit.windowMicros)
}

/**
 * The least `elapsed` (0 to the window's length) at which `cost` fits, or NEVER when the current count alone is too
 * much.
 */
function fitsFrom(counts: Counts, limit: SlidingCounterLimit, cost: number): number {
  const room = limit.limit - counts.current - cost
  if (room < 0) return NEVER
  if (counts.previous <= room) return 0
  const window = limit.windowMicros
  let elapsed = Math.max(0, window - Math.floor((room * window) / counts.previous))
  while (elapsed > 0 && weightedAt(counts, limit, elapsed - 1) <= room) elapsed--
  while (weightedAt(counts, limit, elapsed) > room) elapsed++
  return elapsed
}

/** The first instant at which `cost` fits: later in this window, or in the next, where this one is the previous. */
function retryAt(counts: Counts, limit: SlidingCounterLimit, cost: number): number {
  if (cost > limit.capacity || limit.capacity === 0) return NEVER
  const here = fitsFrom(counts, limit, cost)
  if (here < limit.windowMicros) return counts.startAt + here
  const nextAt = counts.startAt + limit.windowMicros
  return nextAt + fitsFrom({ startAt: nextAt, previous: counts.current, current: 0 }, limit, cost)
}

/** When nothing of either window is in view any more. */
function emptyAt(counts: Counts, limit: SlidingCounterLimit, current: number): number {
  return counts.startAt + (current > 0 ? 2 : 1) * limit.windowMicros
}

/** Weighs the window before by the part of it still in view. */
export const slidingWindowCounterAlgorithm: Algorithm<SlidingCounterLimit> = {
  name: 'sliding-window-counter',
  stateSize: () => 3,
  fixedSize: () => true,
  decide(state, limit, ask, verdict) {
    const window = limit.windowMicros
    const counts = countsAt(state, limit, ask.now)
    const elapsed = Math.max(0, Math.min(window, ask.now - counts.startAt))
    const left = limit.limit - weightedAt(counts, limit, elapsed) - counts.current
    const allowed = ask.cost <= left && limit.capacity > 0
    verdict.delayMicros = 0
    verdict.mark = 0
    verdict.resetAt = verdict.freshAt = emptyAt(counts, limit, counts.current + (allowed ? ask.cost : 0))
    if (allowed) {
      verdict.ruling = 'allowed'
      verdict.remaining = left - ask.cost
      verdict.retryAt = ask.now
      verdict.next[0] = counts.startAt
      verdict.next[1] = counts.previous
      verdict.next[2] = counts.current + ask.cost
      verdict.nextLength = 3
      return
    }
    verdict.remaining = Math.max(0, left)
    verdict.retryAt = retryAt(counts, limit, ask.cost)
    verdict.ruling = verdict.retryAt === NEVER ? 'never' : 'limit'
  },
  correct(state, limit, { now, units, charge }, verdict) {
    const counts = countsAt(state, limit, now)
    let applied = units
    if (units >= 0) {
      counts.current += units
    } else if (charge.at === LATEST) {
      const ofCurrent = Math.min(-units, counts.current)
      const ofPrevious = Math.min(-units - ofCurrent, counts.previous)
      applied = -(ofCurrent + ofPrevious)
      counts.current -= ofCurrent
      counts.previous -= ofPrevious
    } else if (charge.at >= counts.startAt) {
      applied = -Math.min(-units, charge.cost, counts.current)
      counts.current += applied
    } else if (charge.at >= counts.startAt - limit.windowMicros) {
      applied = -Math.min(-units, charge.cost, counts.previous)
      counts.previous += applied
    } else {
      applied = 0
    }
    verdict.next[0] = counts.startAt
    verdict.next[1] = counts.previous
    verdict.next[2] = counts.current
    verdict.nextLength = 3
    verdict.freshAt = emptyAt(counts, limit, counts.current)
    return applied
  },
}
