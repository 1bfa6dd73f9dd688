import type { QueueLimit } from '../rule/limit.ts'
import { flowed, MICROS_PER_UNIT, microsToFlow } from '../rule/rate.ts'
import type { Algorithm, Charge, State } from './algorithm.ts'
import { LATEST } from './algorithm.ts'
import { correctMeter, decideMeter } from './bucket.ts'

/**
 * Whether a charge is still the last in the queue: then the level is what it left, less what has flowed off since. A
 * call behind it would make it a unit more at least; rounding makes it a few micro-units.
 */
function isLast(state: State, limit: QueueLimit, { now, charge }: { now: number; charge: Charge }): boolean {
  if (state.length === 0 || charge.at === LATEST) return false
  const left = charge.mark - flowed(limit.rate, Math.max(0, now - charge.at))
  const level = state[0]! - flowed(limit.rate, Math.max(0, now - state[1]!))
  return left > 0 && Math.abs(level - left) < MICROS_PER_UNIT / 2
}

/**
 * A shaper: calls leave at a constant rate, each told how long to wait for its turn. The capacity counts all that have
 * been let in and have not yet left, the one leaving now included; a call that finds no room is dropped.
 *
 * Only the last in the queue can be given back. Those behind any other have been told when to leave, so its turn passes
 * unused: handing it out again would let two calls out at once. The mark of a charge is the level it left, in
 * micro-units.
 */
export const leakyBucketQueueAlgorithm: Algorithm<QueueLimit> = {
  name: 'leaky-bucket-queue',
  stateSize: () => 2,
  fixedSize: () => true,
  decide(state, limit, ask, verdict) {
    const ahead = decideMeter(state, limit, ask, verdict)
    if (verdict.ruling !== 'allowed') return
    // Counted from the queue's own instant, which the caller's clock may be behind. Rounded up: leaving a microsecond
    // late keeps the output at or under the rate.
    verdict.delayMicros = verdict.next[1]! - ask.now + microsToFlow(limit.rate, ahead)
    verdict.mark = verdict.next[0]!
  },
  correct(state, limit, correction, verdict) {
    const { now, units, charge } = correction
    if (units >= 0 || !isLast(state, limit, { now, charge })) {
      return correctMeter(state, limit, { now, units: Math.max(0, units), charge }, verdict)
    }
    // What has flowed off since is those ahead of it: the last still waits whole, as if it had just come.
    const fresh = { ...charge, at: Math.max(now, state[1]!) }
    return correctMeter(state, limit, { now, units, charge: fresh }, verdict)
  },
}
