import type { QueueLimit } from '../limit.ts'
import { microsToFlow } from '../rate.ts'
import type { Algorithm } from './algorithm.ts'
import { correctMeter, decideMeter } from './meter.ts'

/**
 * A shaper: calls leave at a constant rate, each told how long to wait for its turn. The capacity counts all that have been
 * let in and have not yet left, the one leaving now included; a call that finds no room is dropped.
 */
export const leakyBucketQueueAlgorithm: Algorithm<QueueLimit> = {
  name: 'leaky-bucket-queue',
  stateSize: () => 2,
  fixedSize: () => true,
  decide(state, limit, ask, verdict) {
    const ahead = decideMeter(state, limit, ask, verdict)
    // Rounded up: leaving a microsecond late keeps the output at or under the rate.
    if (verdict.ruling === 'allowed') verdict.delayMicros = microsToFlow(limit.rate, ahead)
  },
  correct: correctMeter,
}
