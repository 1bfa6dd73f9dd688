import { algorithmOf } from '../../algorithms/algorithm.ts'
import { SluiceError } from '../../errors.ts'
import type { FixedWindowLimit, Limit, MeterLimit, OverlayLimit, QueueLimit, RolloverLimit } from '../../rule/limit.ts'
import { MICROS_PER_UNIT, ratePart } from '../../rule/rate.ts'

/** The share made last for each limit: the number of nodes changes seldom, and then for good. */
const latestShares = new WeakMap<Limit, { readonly nodes: number; readonly share: Limit }>()

/**
 * The limit that each of `nodes` nodes (whole, 1 or more) applies on its own, so that all together come close to
 * `limit`. Numbers of units are rounded up, so that no node is left with nothing: together at most `capacity + nodes -
 * 1` at one instant. Rates are divided exactly, or rounded down where that cannot be; windows stay. 0 stays 0, and one
 * node has the limit itself. The share has the identity of the limit: its counters are the limit's, in a store of the
 * node's own.
 */
export function shareOf(limit: Limit, nodes: number): Limit {
  if (nodes === 1) return limit
  const latest = latestShares.get(limit)
  if (latest?.nodes === nodes) return latest.share
  if (!Number.isSafeInteger(nodes) || nodes < 1) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: 'a limit cannot be shared by this number of nodes',
      received: nodes,
      expected: 'a whole number, 1 or more',
    })
  }
  const share = withStateSize(divided(limit, nodes))
  latestShares.set(limit, { nodes, share })
  return share
}

function divided(limit: Limit, nodes: number): Limit {
  const units = Math.ceil(limit.limit / nodes)
  const capacity = Math.ceil(limit.capacity / nodes)
  if ('rate' in limit) return dividedLevel(limit, nodes)
  if (limit.algorithm === 'fixed-window') return dividedWindow(limit, nodes)
  if (limit.algorithm === 'hybrid') return dividedOverlay(limit, nodes)
  return { ...limit, limit: units, capacity }
}

/** Shares of a level are whole units; what rolls over is what the share of both together leaves. */
function dividedLevel(limit: MeterLimit | QueueLimit | RolloverLimit, nodes: number): Limit {
  const units = Math.ceil(limit.limit / nodes)
  const capacity = Math.ceil(limit.capacity / nodes)
  const rate = ratePart(limit.rate, nodes)
  if (limit.algorithm !== 'token-bucket-rollover') {
    return { ...limit, limit: units, capacity, full: capacity * MICROS_PER_UNIT, rate }
  }
  const rolloverFull = (capacity - units) * MICROS_PER_UNIT
  return { ...limit, limit: units, capacity, full: units * MICROS_PER_UNIT, rolloverFull, rate }
}

/** What carries over is what the share of both together leaves, so that rounding up happens once. */
function dividedWindow(limit: FixedWindowLimit, nodes: number): FixedWindowLimit {
  const units = Math.ceil(limit.limit / nodes)
  const capacity = Math.ceil(limit.capacity / nodes)
  return { ...limit, limit: units, capacity, rolloverMax: capacity - units }
}

/** The burst is what the share of the whole leaves beside the window's, for the same reason. */
function dividedOverlay(limit: OverlayLimit, nodes: number): OverlayLimit {
  const capacity = Math.ceil(limit.capacity / nodes)
  const base = withStateSize(divided(limit.base, nodes)) as OverlayLimit['base']
  const extra = Math.max(0, capacity - base.limit)
  const rate = ratePart(limit.burst.rate, nodes)
  const burst = { ...limit.burst, limit: extra, capacity: extra, full: extra * MICROS_PER_UNIT, rate }
  return { ...limit, limit: capacity, capacity, base, burst: Object.freeze(burst) }
}

function withStateSize(limit: Limit): Limit {
  const algorithm = algorithmOf(limit)
  return Object.freeze({ ...limit, stateSize: algorithm.stateSize(limit), fixedSize: algorithm.fixedSize(limit) })
}
