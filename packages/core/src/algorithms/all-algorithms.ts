import type { Algorithm, AlgorithmsByName } from './algorithm.ts'
import { gcraAlgorithm, leakyBucketMeterAlgorithm, tokenBucketAlgorithm } from './bucket.ts'
import { concurrencyAlgorithm } from './concurrency.ts'
import { fixedWindowAlgorithm } from './fixed-window.ts'
import { hybridAlgorithm } from './hybrid.ts'
import { leakyBucketQueueAlgorithm } from './leaky-bucket-queue.ts'
import { slidingWindowCounterAlgorithm } from './sliding-window-counter.ts'
import { slidingWindowLogAlgorithm } from './sliding-window-log.ts'
import { slidingWindowSegmentsAlgorithm } from './sliding-window-segments.ts'
import { tokenBucketRolloverAlgorithm } from './token-bucket-rollover.ts'

/** Every algorithm by the name in limits, for the suite that all of them pass. */
export const ALGORITHMS: Required<AlgorithmsByName> = {
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
