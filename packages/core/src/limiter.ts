// Limiters that carry only the algorithms of their rules: `sluice/limiter`. The functions that make rules register what
// the rules need; `createLimiter` and `createMemoryLimiter` refer to no algorithm themselves.
import { registerRuleKind } from './compile-rule.ts'
import * as rules from './rule/rule.ts'
import {
  CONCURRENCY,
  FIXED_WINDOW,
  GCRA,
  HYBRID,
  LEAKY_BUCKET_METER,
  LEAKY_BUCKET_QUEUE,
  SLIDING_WINDOW_COUNTER,
  SLIDING_WINDOW_LOG,
  TOKEN_BUCKET,
} from './rule-kinds.ts'

export { isSluiceError, SluiceError } from './errors.ts'
export { createLimiter, type LimiterOptions } from './limiter/create-limiter.ts'
export { createMemoryLimiter, type MemoryLimiter, type MemoryLimiterOptions } from './limiter/memory-limiter.ts'
export { memoryStore } from './store/memory/memory-store.ts'

/** Builds a rule of a token bucket. */
export const tokenBucket: typeof rules.tokenBucket = (options) => {
  registerRuleKind('token-bucket', TOKEN_BUCKET)
  return rules.tokenBucket(options)
}

/** Builds a rule of a leaky bucket as meter. */
export const leakyBucketMeter: typeof rules.leakyBucketMeter = (options) => {
  registerRuleKind('leaky-bucket-meter', LEAKY_BUCKET_METER)
  return rules.leakyBucketMeter(options)
}

/** Builds a rule of a leaky bucket as queue. */
export const leakyBucketQueue: typeof rules.leakyBucketQueue = (options) => {
  registerRuleKind('leaky-bucket-queue', LEAKY_BUCKET_QUEUE)
  return rules.leakyBucketQueue(options)
}

/** Builds a rule of a fixed window. */
export const fixedWindow: typeof rules.fixedWindow = (options) => {
  registerRuleKind('fixed-window', FIXED_WINDOW)
  return rules.fixedWindow(options)
}

/** Builds a rule of a sliding window counter. */
export const slidingWindowCounter: typeof rules.slidingWindowCounter = (options) => {
  registerRuleKind('sliding-window-counter', SLIDING_WINDOW_COUNTER)
  return rules.slidingWindowCounter(options)
}

/** Builds a rule of a sliding window log. */
export const slidingWindowLog: typeof rules.slidingWindowLog = (options) => {
  registerRuleKind('sliding-window-log', SLIDING_WINDOW_LOG)
  return rules.slidingWindowLog(options)
}

/** Builds a rule of GCRA. */
export const gcra: typeof rules.gcra = (options) => {
  registerRuleKind('gcra', GCRA)
  return rules.gcra(options)
}

/** Builds a rule of a window with a burst on top. */
export const hybrid: typeof rules.hybrid = (options) => {
  registerRuleKind('hybrid', HYBRID)
  return rules.hybrid(options)
}

/** Builds a rule of concurrent calls. */
export const concurrency: typeof rules.concurrency = (options) => {
  registerRuleKind('concurrency', CONCURRENCY)
  return rules.concurrency(options)
}
