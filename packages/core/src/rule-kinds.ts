import type { Algorithm } from './algorithms/algorithm.ts'
import { concurrencyAlgorithm } from './algorithms/concurrency.ts'
import { fixedWindowAlgorithm } from './algorithms/fixed-window.ts'
import { hybridAlgorithm } from './algorithms/hybrid.ts'
import { leakyBucketQueueAlgorithm } from './algorithms/leaky-bucket-queue.ts'
import { gcraAlgorithm, leakyBucketMeterAlgorithm, tokenBucketAlgorithm } from './algorithms/meter.ts'
import { slidingWindowCounterAlgorithm } from './algorithms/sliding-window-counter.ts'
import { slidingWindowLogAlgorithm } from './algorithms/sliding-window-log.ts'
import { slidingWindowSegmentsAlgorithm } from './algorithms/sliding-window-segments.ts'
import { tokenBucketRolloverAlgorithm } from './algorithms/token-bucket-rollover.ts'
import {
  compileConcurrency,
  compileFixedWindow,
  compileGcra,
  compileHybrid,
  compileLeakyBucketMeter,
  compileLeakyBucketQueue,
  compileRegisteredRule,
  compileSlidingWindowCounter,
  compileSlidingWindowLog,
  compileTokenBucket,
  type RuleKind,
  registerRuleKind,
} from './compile-rule.ts'
import type { Limit } from './rule/limit.ts'
import type { Rule, RulesByAlgorithm } from './rule/rule.ts'

// One constant for each algorithm of rules: a bundle keeps those that the program refers to.

export const TOKEN_BUCKET: RuleKind = {
  compile: compileTokenBucket,
  algorithms: {
    'token-bucket': tokenBucketAlgorithm as Algorithm<never>,
    'token-bucket-rollover': tokenBucketRolloverAlgorithm,
  },
}

export const LEAKY_BUCKET_METER: RuleKind = {
  compile: compileLeakyBucketMeter,
  algorithms: { 'leaky-bucket-meter': leakyBucketMeterAlgorithm as Algorithm<never> },
}

export const LEAKY_BUCKET_QUEUE: RuleKind = {
  compile: compileLeakyBucketQueue,
  algorithms: { 'leaky-bucket-queue': leakyBucketQueueAlgorithm },
}

export const GCRA: RuleKind = { compile: compileGcra, algorithms: { gcra: gcraAlgorithm as Algorithm<never> } }

/** With the algorithm of a burst on top of a window, which every window may have. */
export const FIXED_WINDOW: RuleKind = {
  compile: compileFixedWindow,
  algorithms: { 'fixed-window': fixedWindowAlgorithm, hybrid: hybridAlgorithm },
}

export const SLIDING_WINDOW_COUNTER: RuleKind = {
  compile: compileSlidingWindowCounter,
  algorithms: { 'sliding-window-counter': slidingWindowCounterAlgorithm, hybrid: hybridAlgorithm },
}

export const SLIDING_WINDOW_LOG: RuleKind = {
  compile: compileSlidingWindowLog,
  algorithms: {
    'sliding-window-log': slidingWindowLogAlgorithm,
    'sliding-window-segments': slidingWindowSegmentsAlgorithm,
    hybrid: hybridAlgorithm,
  },
}

export const HYBRID: RuleKind = { compile: compileHybrid, algorithms: { hybrid: hybridAlgorithm } }

export const CONCURRENCY: RuleKind = { compile: compileConcurrency, algorithms: { concurrency: concurrencyAlgorithm } }

/** Every kind by the name in rules: the only list of them. */
const RULE_KINDS: Readonly<Record<keyof RulesByAlgorithm, RuleKind>> = {
  'token-bucket': TOKEN_BUCKET,
  'leaky-bucket-meter': LEAKY_BUCKET_METER,
  'leaky-bucket-queue': LEAKY_BUCKET_QUEUE,
  'fixed-window': FIXED_WINDOW,
  'sliding-window-counter': SLIDING_WINDOW_COUNTER,
  'sliding-window-log': SLIDING_WINDOW_LOG,
  gcra: GCRA,
  hybrid: HYBRID,
  concurrency: CONCURRENCY,
}

let areAllRegistered = false

/** Registers every kind, for rules that name their algorithm in a string. */
export function registerAllRuleKinds(): void {
  if (areAllRegistered) return
  areAllRegistered = true
  for (const [name, kind] of Object.entries(RULE_KINDS)) registerRuleKind(name as keyof RulesByAlgorithm, kind)
}

/** Compiles a rule of any algorithm, see {@link compileRegisteredRule}. */
export function compileRule(name: string, rule: Rule): readonly Limit[] {
  registerAllRuleKinds()
  return compileRegisteredRule(name, rule)
}
