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
  readonly ruleFor: (maxRequests: number, windowSeconds?: number) => Rule
}

const WINDOW_SECONDS = 10

function secondsText(seconds: number): `${number}s` {
  return `${seconds}s`
}

/** Parts of a window that the segmented log counts apart. */
const SEGMENTS = 10

/**
 * A window for the larger half and a burst for the rest, refilled well within the window, so that both reset together.
 */
function hybridRule(maxRequests: number, windowSeconds: number = WINDOW_SECONDS): Rule {
  const limit = Math.ceil(maxRequests / 2)
  const burst = { capacity: maxRequests - limit, refillPerSecond: maxRequests / windowSeconds }
  return hybrid({ limit, window: secondsText(windowSeconds), burst })
}

/** Every algorithm, in the order of the report. */
export const TESTED_ALGORITHMS: readonly TestedAlgorithm[] = [
  {
    name: 'fixed-window',
    title: 'Fixed Window',
    ruleFor: (limit, seconds = WINDOW_SECONDS) => fixedWindow({ limit, window: secondsText(seconds) }),
  },
  {
    name: 'token-bucket',
    title: 'Token Bucket',
    ruleFor: (capacity, seconds = WINDOW_SECONDS) => tokenBucket({ capacity, refillPerSecond: capacity / seconds }),
  },
  {
    name: 'leaky-bucket-meter',
    title: 'Leaky Bucket (Meter)',
    ruleFor: (capacity, seconds = WINDOW_SECONDS) => leakyBucketMeter({ capacity, leakPerSecond: capacity / seconds }),
  },
  {
    name: 'leaky-bucket-queue',
    title: 'Leaky Bucket (Queue)',
    ruleFor: (capacity, seconds = WINDOW_SECONDS) => leakyBucketQueue({ capacity, ratePerSecond: capacity / seconds }),
  },
  {
    name: 'sliding-window-counter',
    title: 'Sliding Window Counter',
    ruleFor: (limit, seconds = WINDOW_SECONDS) => slidingWindowCounter({ limit, window: secondsText(seconds) }),
  },
  {
    name: 'sliding-window-log',
    title: 'Sliding Window Log',
    ruleFor: (limit, seconds = WINDOW_SECONDS) => slidingWindowLog({ limit, window: secondsText(seconds) }),
  },
  {
    name: 'sliding-window-segments',
    title: 'Sliding Window Log (Segments)',
    ruleFor: (limit, seconds = WINDOW_SECONDS) =>
      slidingWindowLog({ limit, window: secondsText(seconds), segments: SEGMENTS }),
  },
  {
    name: 'gcra',
    title: 'GCRA',
    ruleFor: (limit, seconds = WINDOW_SECONDS) => gcra({ limit, window: secondsText(seconds) }),
  },
  {
    name: 'hybrid',
    title: 'Hybrid',
    ruleFor: hybridRule,
  },
  {
    name: 'concurrency',
    title: 'Concurrency',
    ruleFor: (limit, seconds = WINDOW_SECONDS) => concurrency({ limit, lease: secondsText(seconds) }),
  },
]
