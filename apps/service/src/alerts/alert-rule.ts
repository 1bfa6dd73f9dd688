import type { JsonSchema } from '@sluice/core/internal'

/** What is watched. */
export type AlertRuleName = 'store-latency' | 'denial-rate' | 'store-errors' | 'config-lag'

/** When somebody should look at something, as data: the measured value is above `threshold` for long enough. */
export interface AlertRule {
  readonly name: AlertRuleName
  /** The condition holds while the value is above it, and not when it is equal. */
  readonly threshold: number
  /** Of value and threshold. A ratio is 0 to 1. */
  readonly unit: 'ms' | 'ratio' | 's'
  /** The condition must have held for so long before the alert fires; 0: it fires when it is first seen. */
  readonly forMs: number
  /** The condition must have been gone for so long before the alert is resolved; 0: it is when that is first seen. */
  readonly resolveAfterMs: number
  /** The value is that of so much time, in whole seconds; 0 for a value of the moment. */
  readonly windowMs: number
  /** With less than so many calls in the window there is no value, and so no condition that holds. */
  readonly leastSamples: number
}

/** Other numbers for one rule; what is left out stays as it is by default. */
export interface AlertRuleOptions {
  /** `false`: it is not watched. */
  readonly enabled?: boolean
  readonly threshold?: number
  readonly forSeconds?: number
  readonly resolveAfterSeconds?: number
}

/** The same for a rule that counts calls. */
export interface MeasuredRuleOptions extends AlertRuleOptions {
  readonly windowSeconds?: number
  readonly leastSamples?: number
}

/** What can be set about alerts; everything has a default. */
export interface AlertOptions {
  /** Milliseconds that 99 of 100 calls of the store stay within. Default: above 10 for 5 minutes. */
  readonly 'store-latency'?: MeasuredRuleOptions
  /** Share of the checks that are refused, 0 to 1. Default: above 0.2 for 2 minutes. */
  readonly 'denial-rate'?: MeasuredRuleOptions
  /** Share of the calls of the store that fail, 0 to 1. Default: above 0.01. */
  readonly 'store-errors'?: MeasuredRuleOptions
  /** Seconds by which the rules in force may be out of date. Default: above 600. */
  readonly 'config-lag'?: AlertRuleOptions
  /** An alert that nobody acknowledged is sent again after so long, over and over; 0, the default: it is sent once. */
  readonly remindEverySeconds?: number
}

const MS_PER_SECOND = 1000

const MEASURED = { windowMs: 60_000, leastSamples: 10, resolveAfterMs: 60_000 }

const DEFAULTS: readonly AlertRule[] = [
  { name: 'store-latency', threshold: 10, unit: 'ms', forMs: 300_000, ...MEASURED },
  { name: 'denial-rate', threshold: 0.2, unit: 'ratio', forMs: 120_000, ...MEASURED },
  { name: 'store-errors', threshold: 0.01, unit: 'ratio', forMs: 0, ...MEASURED },
  { name: 'config-lag', threshold: 600, unit: 's', forMs: 0, resolveAfterMs: 60_000, windowMs: 0, leastSamples: 0 },
]

/** The rules that are watched: the defaults with what `options` say otherwise, without those that are not enabled. */
export function alertRules(options: AlertOptions = {}): readonly AlertRule[] {
  return DEFAULTS.flatMap((rule) => {
    const given: MeasuredRuleOptions = options[rule.name] ?? {}
    return given.enabled === false ? [] : [withOptions(rule, given)]
  })
}

function withOptions(rule: AlertRule, given: MeasuredRuleOptions): AlertRule {
  const { threshold, forSeconds, resolveAfterSeconds, windowSeconds, leastSamples } = given
  return {
    ...rule,
    threshold: threshold ?? rule.threshold,
    forMs: millis(forSeconds) ?? rule.forMs,
    resolveAfterMs: millis(resolveAfterSeconds) ?? rule.resolveAfterMs,
    windowMs: millis(windowSeconds) ?? rule.windowMs,
    leastSamples: leastSamples ?? rule.leastSamples,
  }
}

function millis(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : Math.round(seconds * MS_PER_SECOND)
}

const LONGEST_SECONDS = 86_400

const TIMES: Readonly<Record<string, JsonSchema>> = {
  enabled: { type: 'boolean', title: 'true or false' },
  forSeconds: { type: 'number', minimum: 0, maximum: LONGEST_SECONDS },
  resolveAfterSeconds: { type: 'number', minimum: 0, maximum: LONGEST_SECONDS },
}

const COUNTING: Readonly<Record<string, JsonSchema>> = {
  ...TIMES,
  windowSeconds: { type: 'integer', minimum: 1, maximum: 3600 },
  leastSamples: { type: 'integer', minimum: 1, maximum: 1_000_000_000 },
}

function optionsSchema(properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { type: 'object', additionalProperties: false, properties }
}

/** What {@link AlertOptions} must be. */
export const ALERT_OPTIONS_SCHEMA: JsonSchema = optionsSchema({
  'store-latency': optionsSchema({ ...COUNTING, threshold: { type: 'number', exclusiveMinimum: 0, maximum: 10_000 } }),
  'denial-rate': optionsSchema({ ...COUNTING, threshold: { type: 'number', minimum: 0, maximum: 1 } }),
  'store-errors': optionsSchema({ ...COUNTING, threshold: { type: 'number', minimum: 0, maximum: 1 } }),
  'config-lag': optionsSchema({ ...TIMES, threshold: { type: 'number', minimum: 0, maximum: LONGEST_SECONDS } }),
  remindEverySeconds: { type: 'number', minimum: 0, maximum: LONGEST_SECONDS },
})
