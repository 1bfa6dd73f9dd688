import type { RolloverLimit } from '../rule/limit.ts'
import { flowed, MICROS_PER_UNIT, microsToFlow } from '../rule/rate.ts'
import type { Algorithm, Ask, Correction, State, Verdict } from './algorithm.ts'
import { LATEST, NEVER } from './algorithm.ts'

// State: [level, at, spare] — micro-units in use, the instant they were counted, and micro-units that have rolled over.
// At most one of level and spare is above 0. Together they are one number, the net use, level - spare, which sinks as
// time flows: from `full` (empty) over 0 (full) to -rolloverFull (all that can roll over).
//
// What has rolled over expires once `2 x full` has flowed since the bucket was full: the key was idle for the time of
// two refills. From then on the state says what an empty one says. Rounding is that of a meter: what flowed is rounded
// down.
const SIZE = 3

/** Refills since the bucket was full after which nothing that rolled over is left. */
const REFILLS_KEPT = 2

const LARGEST_LEVEL = Number.MAX_SAFE_INTEGER

interface Standing {
  /** The instant that is decided at: not before that of the state. */
  readonly now: number
  /** Micro-units in use, below 0 when tokens have rolled over. */
  readonly net: number
  /** Whether the state counts for something: false when there is none, or when it has expired. */
  readonly isKnown: boolean
}

/** Micro-units that must flow from the instant of a state until it says no more than an empty one. */
function flowUntilFresh(level: number, limit: RolloverLimit): number {
  return level + REFILLS_KEPT * limit.full
}

/** The instant from which a state says no more than an empty one. */
function freshAtOf(level: number, at: number, limit: RolloverLimit): number {
  return at + microsToFlow(limit.rate, flowUntilFresh(level, limit))
}

function standingAt(state: State, limit: RolloverLimit, asked: number): Standing {
  if (state.length === 0) return { now: asked, net: 0, isKnown: false }
  const [level, at, spare] = state as [number, number, number]
  const now = Math.max(asked, at)
  const flow = flowed(limit.rate, now - at)
  if (flow >= flowUntilFresh(level, limit)) return { now, net: 0, isKnown: false }
  return { now, net: Math.max(-limit.rolloverFull, level - spare - flow), isKnown: true }
}

/** Writes the state of a net use at `now`, and when it expires. Returns the level. */
function write(limit: RolloverLimit, { now, net }: { now: number; net: number }, verdict: Verdict): number {
  const level = Math.max(0, net)
  verdict.next[0] = level
  verdict.next[1] = now
  verdict.next[2] = Math.max(0, -net)
  verdict.nextLength = SIZE
  verdict.freshAt = freshAtOf(level, now, limit)
  return level
}

/** The first instant at which `cost` fits if nothing else happens, or NEVER. */
function fitsAt(state: State, limit: RolloverLimit, { now, cost }: { now: number; cost: number }): number {
  const wanted = cost * MICROS_PER_UNIT
  const standing = standingAt(state, limit, now)
  // A key without a state does not collect tokens: they roll over from one use to the next.
  if (!standing.isKnown || limit.capacity === 0) return NEVER
  const [level, at, spare] = state as [number, number, number]
  const freshAt = freshAtOf(level, at, limit)
  const retryAt = Math.max(standing.now, at + microsToFlow(limit.rate, level - spare + wanted - limit.full))
  if (retryAt < freshAt) return wanted <= limit.full + limit.rolloverFull ? retryAt : NEVER
  return wanted <= limit.full ? freshAt : NEVER
}

function decide(state: State, limit: RolloverLimit, ask: Readonly<Ask>, verdict: Verdict): void {
  const { now, net, isKnown } = standingAt(state, limit, ask.now)
  const after = net + ask.cost * MICROS_PER_UNIT
  verdict.delayMicros = 0
  verdict.mark = 0
  if (after <= limit.full && limit.capacity > 0) {
    const level = write(limit, { now, net: after }, verdict)
    verdict.ruling = 'allowed'
    verdict.remaining = Math.floor((limit.full - after) / MICROS_PER_UNIT)
    verdict.retryAt = ask.now
    verdict.resetAt = now + microsToFlow(limit.rate, level)
    return
  }
  verdict.freshAt = isKnown ? freshAtOf(state[0]!, state[1]!, limit) : now
  verdict.remaining = Math.max(0, Math.floor((limit.full - net) / MICROS_PER_UNIT))
  verdict.resetAt = resetAt(state, limit, { now, net })
  verdict.retryAt = fitsAt(state, limit, ask)
  verdict.ruling = verdict.retryAt === NEVER ? 'never' : 'limit'
}

/** When the bucket is full again. Counted from the stored instant, because that is how the next call will count. */
function resetAt(state: State, limit: RolloverLimit, { now, net }: { now: number; net: number }): number {
  return net > 0 ? Math.max(now, state[1]! + microsToFlow(limit.rate, state[0]!)) : now
}

/** Corrects a charge. What has flowed since the charge is gone and cannot be given back. */
function correct(state: State, limit: RolloverLimit, correction: Correction, verdict: Verdict): number {
  const standing = standingAt(state, limit, correction.now)
  const { now, net } = standing
  const wanted = correction.units * MICROS_PER_UNIT
  const after = wanted >= 0 ? Math.min(LARGEST_LEVEL, net + wanted) : lowered(limit, standing, correction)
  write(limit, { now, net: after }, verdict)
  return (after - net) / MICROS_PER_UNIT
}

/** The net use after units are given back. Only a charge can give back what had rolled over; use itself ends at 0. */
function lowered(limit: RolloverLimit, { now, net, isKnown }: Standing, { units, charge }: Correction): number {
  const wanted = -units * MICROS_PER_UNIT
  if (charge.at === LATEST) return Math.max(Math.min(0, net), net - wanted)
  const owed = charge.cost * MICROS_PER_UNIT - flowed(limit.rate, Math.max(0, now - charge.at))
  return Math.max(isKnown ? -limit.rolloverFull : 0, net - Math.max(0, Math.min(wanted, owed)))
}

/** A token bucket whose surplus rolls over: tokens that find it full are kept, up to its capacity once more. */
export const tokenBucketRolloverAlgorithm: Algorithm<RolloverLimit> = {
  name: 'token-bucket-rollover',
  stateSize: () => SIZE,
  fixedSize: () => true,
  decide,
  correct,
}
