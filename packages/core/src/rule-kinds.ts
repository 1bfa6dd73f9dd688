import type { Algorithm } from './algorithms/algorithm.ts'
import { gcraAlgorithm, leakyBucketMeterAlgorithm, tokenBucketAlgorithm } from './algorithms/bucket.ts'
import { concurrencyAlgorithm } from './algorithms/concurrency.ts'
import { fixedWindowAlgorithm } from './algorithms/fixed-window.ts'
import { hybridAlgorithm } from './algorithms/hybrid.ts'
import { leakyBucketQueueAlgorithm } from './algorithms/leaky-bucket-queue.ts'
import { slidingWindowCounterAlgorithm } from './algorithms/sliding-window-counter.ts'
import { slidingWindowLogAlgorithm } from './algorithms/sliding-window-log.ts'
import { slidingWindowSegmentsAlgorithm } from './algorithms/sliding-window-segments.ts'
import { tokenBucketRolloverAlgorithm } from './algorithms/token-bucket-rollover.ts'
import type { AdjustmentProblem, RuleKind } from './compile-rule.ts'
import { compileRegisteredRule, registerRuleKind } from './compile-rule.ts'
import type { Limit } from './rule/limit.ts'
import {
  compileConcurrency,
  compileFixedWindow,
  compileGcra,
  compileHybrid,
  compileLeakyBucketMeter,
  compileLeakyBucketQueue,
  compileSlidingWindowCounter,
  compileSlidingWindowLog,
  compileTokenBucket,
} from './rule/limits-of-rule.ts'
import type { Rule, RulesByAlgorithm } from './rule/rule.ts'
import {
  CONCURRENCY_OPTIONS,
  FIXED_WINDOW_OPTIONS,
  HYBRID_OPTIONS,
  LEAKY_BUCKET_METER_OPTIONS,
  LEAKY_BUCKET_QUEUE_OPTIONS,
  SLIDING_WINDOW_LOG_OPTIONS,
  TOKEN_BUCKET_OPTIONS,
  WINDOW_OPTIONS,
} from './rule/rule-options.ts'

// One constant for each algorithm of rules: a bundle keeps those that the program refers to.

/** Hints of algorithms with a capacity. */
const BUCKET_HINTS: RuleKind['hints'] = {
  burst: { instead: 'capacity', hint: 'Here "capacity" is the burst.' },
  limit: { instead: 'capacity', hint: 'This algorithm calls it "capacity".' },
  window: { instead: 'capacity', hint: 'This algorithm takes a rate per second instead of a window.' },
}

/** Hints of algorithms with a limit. */
const LIMIT_HINTS: RuleKind['hints'] = {
  capacity: { instead: 'limit', hint: 'This algorithm calls it "limit".' },
  rollover: {
    instead: 'window',
    hint:
      'Units carry over only between windows that begin and end, and in buckets: use "fixed-window" or ' +
      '"token-bucket".',
  },
}

function queueProblem(rule: string): AdjustmentProblem {
  return {
    problem: `turns in the queue of rule "${rule}" cannot be given back: calls were told when to leave`,
    action: 'Use refund(decision) for the last call in the queue, or reset(key).',
  }
}

function slotProblem(rule: string): AdjustmentProblem {
  return {
    problem: `rule "${rule}" counts slots, which belong to their holders`,
    action: 'Call release() of a reservation, or reset(key) to free all slots.',
  }
}

export const TOKEN_BUCKET: RuleKind = {
  options: TOKEN_BUCKET_OPTIONS,
  hints: BUCKET_HINTS,
  compile: compileTokenBucket,
  algorithms: {
    'token-bucket': tokenBucketAlgorithm as Algorithm<never>,
    'token-bucket-rollover': tokenBucketRolloverAlgorithm,
  },
}

export const LEAKY_BUCKET_METER: RuleKind = {
  options: LEAKY_BUCKET_METER_OPTIONS,
  hints: BUCKET_HINTS,
  compile: compileLeakyBucketMeter,
  algorithms: { 'leaky-bucket-meter': leakyBucketMeterAlgorithm as Algorithm<never> },
}

export const LEAKY_BUCKET_QUEUE: RuleKind = {
  options: LEAKY_BUCKET_QUEUE_OPTIONS,
  hints: BUCKET_HINTS,
  adjustmentProblem: (rule, units) => (units < 0 ? queueProblem(rule) : undefined),
  compile: compileLeakyBucketQueue,
  algorithms: { 'leaky-bucket-queue': leakyBucketQueueAlgorithm },
}

export const GCRA: RuleKind = {
  options: WINDOW_OPTIONS,
  hints: LIMIT_HINTS,
  compile: compileGcra,
  algorithms: { gcra: gcraAlgorithm as Algorithm<never> },
}

/** With the algorithm of a burst on top of a window, which every window may have. */
export const FIXED_WINDOW: RuleKind = {
  options: FIXED_WINDOW_OPTIONS,
  hints: LIMIT_HINTS,
  compile: compileFixedWindow,
  algorithms: { 'fixed-window': fixedWindowAlgorithm, hybrid: hybridAlgorithm },
}

export const SLIDING_WINDOW_COUNTER: RuleKind = {
  options: WINDOW_OPTIONS,
  hints: LIMIT_HINTS,
  compile: compileSlidingWindowCounter,
  algorithms: { 'sliding-window-counter': slidingWindowCounterAlgorithm, hybrid: hybridAlgorithm },
}

export const SLIDING_WINDOW_LOG: RuleKind = {
  options: SLIDING_WINDOW_LOG_OPTIONS,
  hints: LIMIT_HINTS,
  compile: compileSlidingWindowLog,
  algorithms: {
    'sliding-window-log': slidingWindowLogAlgorithm,
    'sliding-window-segments': slidingWindowSegmentsAlgorithm,
    hybrid: hybridAlgorithm,
  },
}

export const HYBRID: RuleKind = {
  options: HYBRID_OPTIONS,
  hints: LIMIT_HINTS,
  compile: compileHybrid,
  algorithms: { hybrid: hybridAlgorithm },
}

export const CONCURRENCY: RuleKind = {
  options: CONCURRENCY_OPTIONS,
  hints: LIMIT_HINTS,
  adjustmentProblem: slotProblem,
  compile: compileConcurrency,
  algorithms: { concurrency: concurrencyAlgorithm },
}

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
