import type { Rule } from '@sluice/core'
import {
  concurrency,
  fixedWindow,
  gcra,
  hybrid,
  leakyBucketMeter,
  leakyBucketQueue,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from '@sluice/core'

/** An algorithm of the harness. */
export interface TestedAlgorithm {
  /** How it is named on the command line. */
  readonly name: string
  /** How it is named in the report. */
  readonly title: string
  /** The rule that approves exactly `maxRequests` (1 or more) at one instant, and as many again after its reset. */
  readonly ruleFor: (maxRequests: number) => Rule
}

const WINDOW_SECONDS = 10
const WINDOW = `${WINDOW_SECONDS}s` as const

/** Parts of a window that the segmented log counts apart. */
const SEGMENTS = 10

/** A window for the larger half and a burst for the rest, refilled well within the window, so that both reset together. */
function hybridRule(maxRequests: number): Rule {
  const limit = Math.ceil(maxRequests / 2)
  const burst = { capacity: maxRequests - limit, refillPerSecond: maxRequests / WINDOW_SECONDS }
  return hybrid({ limit, window: WINDOW, burst })
}

/** Every algorithm, in the order of the report. */
export const TESTED_ALGORITHMS: readonly TestedAlgorithm[] = [
  {
    name: 'fixed-window',
    title: 'Fixed Window',
    ruleFor: (limit) => fixedWindow({ limit, window: WINDOW }),
  },
  {
    name: 'token-bucket',
    title: 'Token Bucket',
    ruleFor: (capacity) => tokenBucket({ capacity, refillPerSecond: capacity / WINDOW_SECONDS }),
  },
  {
    name: 'leaky-bucket-meter',
    title: 'Leaky Bucket (Meter)',
    ruleFor: (capacity) => leakyBucketMeter({ capacity, leakPerSecond: capacity / WINDOW_SECONDS }),
  },
  {
    name: 'leaky-bucket-queue',
    title: 'Leaky Bucket (Queue)',
    ruleFor: (capacity) => leakyBucketQueue({ capacity, ratePerSecond: capacity / WINDOW_SECONDS }),
  },
  {
    name: 'sliding-window-counter',
    title: 'Sliding Window Counter',
    ruleFor: (limit) => slidingWindowCounter({ limit, window: WINDOW }),
  },
  {
    name: 'sliding-window-log',
    title: 'Sliding Window Log',
    ruleFor: (limit) => slidingWindowLog({ limit, window: WINDOW }),
  },
  {
    name: 'sliding-window-segments',
    title: 'Sliding Window Log (Segments)',
    ruleFor: (limit) => slidingWindowLog({ limit, window: WINDOW, segments: SEGMENTS }),
  },
  {
    name: 'gcra',
    title: 'GCRA',
    ruleFor: (limit) => gcra({ limit, window: WINDOW }),
  },
  {
    name: 'hybrid',
    title: 'Hybrid',
    ruleFor: hybridRule,
  },
  {
    name: 'concurrency',
    title: 'Concurrency',
    ruleFor: (limit) => concurrency({ limit, lease: WINDOW }),
  },
]
