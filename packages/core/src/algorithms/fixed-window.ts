import type { WindowBounds } from '../rule/calendar.ts'
import { calendarWindow } from '../rule/calendar.ts'
import type { FixedWindowLimit } from '../rule/limit.ts'
import type { Algorithm, State, Verdict } from './algorithm.ts'
import { LATEST, NEVER } from './algorithm.ts'

// State: [startAt, used], with rollover [startAt, used, carried]. The window is found from the time, so it resets by
// itself; a state whose window has passed counts for nothing but what it carries over.

/** The window of the limit that `now` lies in: index = floor(now / window), or the period of the calendar. */
function windowOf(limit: FixedWindowLimit, now: number): WindowBounds {
  if (typeof limit.window !== 'number') return calendarWindow(limit.window, now)
  const startAt = Math.floor(now / limit.window) * limit.window
  return { startAt, endAt: startAt + limit.window }
}

/** Time does not go back: an instant before the stored window counts as that window's first. */
function windowNow(state: State, limit: FixedWindowLimit, now: number): WindowBounds {
  return windowOf(limit, state.length > 0 && state[0]! > now ? state[0]! : now)
}

/** Units used in the window that starts at `startAt`. A longer window than before still counts what lies inside it. */
function usedIn(state: State, startAt: number): number {
  return state.length > 0 && state[0]! >= startAt ? state[1]! : 0
}

/**
 * Units carried into the window: what the window before left unused, oldest units first, at most `rolloverMax`. A key
 * idle for one whole window carries the maximum; after two idle windows the carry has expired.
 */
function carriedInto(state: State, limit: FixedWindowLimit, bounds: WindowBounds): number {
  if (limit.rolloverMax === 0 || state.length === 0) return 0
  const carried = clampCarry(limit, state[2] ?? 0)
  if (state[0]! >= bounds.startAt) return carried
  const before = windowOf(limit, bounds.startAt - 1)
  if (state[0]! >= before.startAt) return clampCarry(limit, limit.limit + carried - state[1]!)
  return state[0]! >= windowOf(limit, before.startAt - 1).startAt ? limit.rolloverMax : 0
}

function clampCarry(limit: FixedWindowLimit, unused: number): number {
  return Math.max(0, Math.min(limit.rolloverMax, unused))
}

/** Units that were carried into the window that a verdict is about; 0 when it denied, and so has no state to tell. */
export function carriedBy(limit: FixedWindowLimit, { ruling, next, nextLength }: Readonly<Verdict>): number {
  return limit.rolloverMax > 0 && ruling === 'allowed' && nextLength === 3 ? next[2]! : 0
}

/** Whether the state says something about the window that starts at `startAt`. */
function isKnown(state: State, limit: FixedWindowLimit, startAt: number): boolean {
  return state.length > 0 && (limit.rolloverMax > 0 || state[0]! >= startAt)
}

/** When the state has stopped mattering: at the window's end, or two windows later when it can still carry over. */
function freshAfter(limit: FixedWindowLimit, endAt: number): number {
  if (limit.rolloverMax === 0) return endAt
  return windowOf(limit, windowOf(limit, endAt).endAt).endAt
}

/** Units left in the window, below 0 after a charge that exceeded the limit. */
function leftIn(state: State, limit: FixedWindowLimit, bounds: WindowBounds): number {
  return limit.limit + carriedInto(state, limit, bounds) - usedIn(state, bounds.startAt)
}

/**
 * When a denied call would fit: in the next window, or, when it needs more units carried over than this window leaves,
 * in the one after it.
 */
function fitsAt(
  state: State,
  limit: FixedWindowLimit,
  { bounds, cost }: { bounds: WindowBounds; cost: number },
): number {
  if (limit.capacity === 0) return NEVER
  const next = windowOf(limit, bounds.endAt)
  if (cost <= leftIn(state, limit, next)) return next.startAt
  return limit.rolloverMax > 0 && cost <= leftIn(state, limit, windowOf(limit, next.endAt)) ? next.endAt : NEVER
}

/** Counts up to the limit in every window, then starts again. */
export const fixedWindowAlgorithm: Algorithm<FixedWindowLimit> = {
  name: 'fixed-window',
  stateSize: (limit) => (limit.rolloverMax === 0 ? 2 : 3),
  fixedSize: () => true,
  decide(state, limit, ask, verdict) {
    const bounds = windowNow(state, limit, ask.now)
    const used = usedIn(state, bounds.startAt)
    const carried = carriedInto(state, limit, bounds)
    const left = limit.limit + carried - used
    verdict.resetAt = bounds.endAt
    // A call that charges nothing and finds no state leaves nothing to store.
    const isNothing = ask.cost === 0 && !isKnown(state, limit, bounds.startAt)
    verdict.freshAt = isNothing ? ask.now : freshAfter(limit, bounds.endAt)
    verdict.delayMicros = 0
    verdict.mark = 0
    if (ask.cost <= left && limit.capacity > 0) {
      verdict.ruling = 'allowed'
      verdict.remaining = left - ask.cost
      verdict.retryAt = ask.now
      verdict.next[0] = bounds.startAt
      verdict.next[1] = used + ask.cost
      verdict.nextLength = 2
      if (limit.rolloverMax > 0) {
        verdict.next[2] = carried
        verdict.nextLength = 3
      }
      return
    }
    verdict.remaining = Math.max(0, left)
    verdict.retryAt = fitsAt(state, limit, { bounds, cost: ask.cost })
    verdict.ruling = verdict.retryAt === NEVER ? 'never' : 'limit'
  },
  correct(state, limit, { now, units, charge }, verdict) {
    const bounds = windowNow(state, limit, now)
    const used = usedIn(state, bounds.startAt)
    const carried = carriedInto(state, limit, bounds)
    const sameWindow = charge.at === LATEST || (charge.at >= bounds.startAt && charge.at < bounds.endAt)
    const owed = sameWindow ? Math.min(charge.cost, used) : 0
    const applied = units >= 0 ? units : -Math.min(-units, owed)
    verdict.next[0] = bounds.startAt
    verdict.next[1] = used + applied
    verdict.next[2] = carried
    verdict.nextLength = limit.rolloverMax === 0 ? 2 : 3
    verdict.freshAt = freshAfter(limit, bounds.endAt)
    return applied
  },
}
