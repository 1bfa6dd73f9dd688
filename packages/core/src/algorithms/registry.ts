import type { Limit } from '../rule/limit.ts'
import type { Algorithm } from './algorithm.ts'
import { concurrencyAlgorithm } from './concurrency.ts'
import { fixedWindowAlgorithm } from './fixed-window.ts'
import { hybridAlgorithm } from './hybrid.ts'
import { leakyBucketQueueAlgorithm } from './leaky-bucket-queue.ts'
import { gcraAlgorithm, leakyBucketMeterAlgorithm, tokenBucketAlgorithm } from './meter.ts'
import { slidingWindowCounterAlgorithm } from './sliding-window-counter.ts'
import { slidingWindowLogAlgorithm } from './sliding-window-log.ts'
import { slidingWindowSegmentsAlgorithm } from './sliding-window-segments.ts'
import { tokenBucketRolloverAlgorithm } from './token-bucket-rollover.ts'

/** Every algorithm by name: the only list of them. */
export const ALGORITHMS: { readonly [A in Limit['algorithm']]: Algorithm<Extract<Limit, { algorithm: A }>> } = {
  'token-bucket': tokenBucketAlgorithm as Algorithm<never>,
  'token-bucket-rollover': tokenBucketRolloverAlgorithm,
  'leaky-bucket-meter': leakyBucketMeterAlgorithm as Algorithm<never>,
  'leaky-bucket-queue': leakyBucketQueueAlgorithm,
  'fixed-window': fixedWindowAlgorithm,
  'sliding-window-counter': slidingWindowCounterAlgorithm,
  'sliding-window-log': slidingWindowLogAlgorithm,
  'sliding-window-segments': slidingWindowSegmentsAlgorithm,
  gcra: gcraAlgorithm as Algorithm<never>,
  hybrid: hybridAlgorithm,
  concurrency: concurrencyAlgorithm,
}

/** The algorithm that decides for `limit`. */
export function algorithmOf(limit: Limit): Algorithm {
  return ALGORITHMS[limit.algorithm] as Algorithm
}
