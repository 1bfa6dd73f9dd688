import type { QueueLimit } from '../limit.ts'
import { MICROS_PER_UNIT, microsToFlow } from '../rate.ts'
import type { Algorithm, State } from './algorithm.ts'
import { correctMeter, decideMeter } from './meter.ts'

/** When a queue of this level, counted at this instant, will be empty. */
function emptyAt(limit: QueueLimit, level: number, at: number): number {
  return at + microsToFlow(limit.rate, level)
}

/**
 * Whether a charge that ends at `endAt` is the last in the queue. A call behind it would end a unit later at least; rounding
 * moves the end by much less.
 */
function isLast(state: State, limit: QueueLimit, endAt: number): boolean {
  if (state.length === 0) return false
  const halfUnit = microsToFlow(limit.rate, MICROS_PER_UNIT / 2)
  return Math.abs(emptyAt(limit, state[0]!, state[1]!) - endAt) < halfUnit
}

/**
 * A shaper: calls leave at a constant rate, each told how long to wait for its turn. The capacity counts all that have been
 * let in and have not yet left, the one leaving now included; a call that finds no room is dropped.
 *
 * Only the last in the queue can be given back. Those behind any other have been told when to leave, so its turn passes
 * unused: handing it out again would let two calls out at once.
 */
export const leakyBucketQueueAlgorithm: Algorithm<QueueLimit> = {
  name: 'leaky-bucket-queue',
  stateSize: () => 2,
  fixedSize: () => true,
  decide(state, limit, ask, verdict) {
    const ahead = decideMeter(state, limit, ask, verdict)
    if (verdict.ruling !== 'allowed') return
    // Counted from the queue's own instant, which the caller's clock may be behind. Rounded up: leaving a microsecond late
    // keeps the output at or under the rate.
    verdict.delayMicros = emptyAt(limit, ahead, verdict.next[1]!) - ask.now
    verdict.mark = emptyAt(limit, verdict.next[0]!, verdict.next[1]!)
  },
  correct(state, limit, correction, verdict) {
    const { now, units, charge } = correction
    if (units >= 0 || !isLast(state, limit, charge.mark)) {
      return correctMeter(state, limit, { now, units: Math.max(0, units), charge }, verdict)
    }
    // What has flowed off since is those ahead of it: the last still waits whole, as if it had just come.
    const fresh = { ...charge, at: Math.max(now, state[1]!) }
    return correctMeter(state, limit, { now, units, charge: fresh }, verdict)
  },
}
