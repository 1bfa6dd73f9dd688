import type { SegmentLimit } from '../rule/limit.ts'
import type { Algorithm, State } from './algorithm.ts'
import { LATEST, NEVER } from './algorithm.ts'

// State: [newest, count 0, count 1, ... count n] — the first instant of the newest sub-window (an instant, so that it
// keeps its meaning when the window gets another length), and the units of it and of the n before it, each at place 1 +
// (index modulo n + 1). Counting n + 1 sub-windows covers every window of the full length that ends now, so no window
// can hold more than the limit; the price is that units come back up to one sub-window late.

interface Ring {
  readonly size: number
  readonly segmentMicros: number
}

/** Sub-windows are rounded up to whole microseconds: together they are never shorter than the window. */
function ringOf(limit: SegmentLimit): Ring {
  return { size: limit.segments + 1, segmentMicros: Math.ceil(limit.windowMicros / limit.segments) }
}

/** Where the count of a sub-window stands in the state. */
function placeOf(ring: Ring, index: number): number {
  const place = index % ring.size
  return 1 + (place < 0 ? place + ring.size : place)
}

/** The index of the newest sub-window: that of `now`, unless the clock stands behind the state. */
function newestAt(state: State, ring: Ring, now: number): number {
  return Math.floor((state.length > 0 ? Math.max(now, state[0]!) : now) / ring.segmentMicros)
}

/**
 * Units of the sub-window `index`, as seen when `newest` is the newest; 0 when it has left the ring or was never
 * filled.
 */
function countOf(state: State, ring: Ring, index: number): number {
  if (state.length !== ring.size + 1) return 0
  const newest = Math.floor(state[0]! / ring.segmentMicros)
  return index > newest || index <= newest - ring.size ? 0 : state[placeOf(ring, index)]!
}

function usedAt(state: State, ring: Ring, newest: number): number {
  let used = 0
  for (let index = newest - ring.size + 1; index <= newest; index++) used += countOf(state, ring, index)
  return used
}

function startOf(ring: Ring, index: number): number {
  return index * ring.segmentMicros
}

/** When enough of the oldest sub-windows have left the ring for `excess` units to fit. */
function leavesAt(state: State, ring: Ring, { newest, excess }: { newest: number; excess: number }): number {
  let freed = 0
  for (let index = newest - ring.size + 1; index <= newest; index++) {
    freed += countOf(state, ring, index)
    if (freed >= excess) return startOf(ring, index + ring.size)
  }
  return NEVER
}

/** Counts per sub-window: the bound of the exact log in constant memory, at the price of a coarser return of units. */
export const slidingWindowSegmentsAlgorithm: Algorithm<SegmentLimit> = {
  name: 'sliding-window-segments',
  stateSize: (limit) => limit.segments + 2,
  fixedSize: () => true,
  decide(state, limit, ask, verdict) {
    const ring = ringOf(limit)
    const newest = newestAt(state, ring, ask.now)
    const used = usedAt(state, ring, newest)
    verdict.delayMicros = 0
    verdict.mark = 0
    if (used + ask.cost <= limit.limit && limit.capacity > 0) {
      verdict.ruling = 'allowed'
      verdict.remaining = limit.limit - used - ask.cost
      verdict.retryAt = ask.now
      writeRing(state, ring, newest, verdict.next)
      const place = placeOf(ring, newest)
      verdict.next[place] = verdict.next[place]! + ask.cost
      verdict.nextLength = ring.size + 1
      verdict.resetAt = verdict.freshAt = startOf(ring, newest + ring.size)
      return
    }
    const possible = ask.cost <= limit.capacity && limit.capacity > 0
    verdict.ruling = possible ? 'limit' : 'never'
    verdict.remaining = Math.max(0, limit.limit - used)
    verdict.retryAt = possible ? leavesAt(state, ring, { newest, excess: used + ask.cost - limit.limit }) : NEVER
    verdict.resetAt = verdict.freshAt = leavesAt(state, ring, { newest, excess: used })
  },
  correct(state, limit, { now, units, charge }, verdict) {
    const ring = ringOf(limit)
    const newest = newestAt(state, ring, now)
    writeRing(state, ring, newest, verdict.next)
    verdict.nextLength = ring.size + 1
    verdict.freshAt = startOf(ring, newest + ring.size)
    if (units < 0 && charge.at === LATEST) return -removeNewest(verdict.next, { ring, newest, most: -units })
    const index = units >= 0 ? newest : Math.floor(charge.at / ring.segmentMicros)
    const inRing = index <= newest && index > newest - ring.size
    const place = placeOf(ring, index)
    const owed = inRing ? Math.min(charge.cost, verdict.next[place]!) : 0
    const applied = units >= 0 ? units : -Math.min(-units, owed)
    if (applied !== 0) verdict.next[place] = verdict.next[place]! + applied
    return applied
  },
}

function writeRing(state: State, ring: Ring, newest: number, next: number[]): void {
  next[0] = startOf(ring, newest)
  for (let index = newest - ring.size + 1; index <= newest; index++) {
    next[placeOf(ring, index)] = countOf(state, ring, index)
  }
}

/** Takes up to `most` units off the newest sub-windows. Returns how many. */
function removeNewest(next: number[], { ring, newest, most }: { ring: Ring; newest: number; most: number }): number {
  let removed = 0
  for (let index = newest; index > newest - ring.size && removed < most; index--) {
    const place = placeOf(ring, index)
    const taken = Math.min(most - removed, next[place]!)
    next[place] = next[place]! - taken
    removed += taken
  }
  return removed
}
