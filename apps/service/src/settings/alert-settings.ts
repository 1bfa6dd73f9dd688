import type { JsonSchema } from '@sluice/core/internal'

/** Options of one alert rule. */
export interface AlertRuleOptions {
  /** Default: true. */
  readonly enabled?: boolean
  readonly threshold?: number
  readonly forSeconds?: number
  readonly resolveAfterSeconds?: number
}

/** Options of an alert rule that counts calls. */
export interface MeasuredRuleOptions extends AlertRuleOptions {
  readonly windowSeconds?: number
  readonly leastSamples?: number
}

/** Options of alerts. */
export interface AlertOptions {
  /** p99 latency of store calls in milliseconds. Default: above 10 for 5 minutes. */
  readonly 'store-latency'?: MeasuredRuleOptions
  /** Share of denied checks, 0 to 1. Default: above 0.2 for 2 minutes. */
  readonly 'denial-rate'?: MeasuredRuleOptions
  /** Share of failed store calls, 0 to 1. Default: above 0.01. */
  readonly 'store-errors'?: MeasuredRuleOptions
  /** Seconds by which the active rules are out of date. Default: above 600. */
  readonly 'config-lag'?: AlertRuleOptions
  /** Interval of reminders about an alert that is not acknowledged; 0: none. Default: 0. */
  readonly remindEverySeconds?: number
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

/** Schema of {@link AlertOptions}. */
export const ALERT_OPTIONS_SCHEMA: JsonSchema = optionsSchema({
  'store-latency': optionsSchema({ ...COUNTING, threshold: { type: 'number', exclusiveMinimum: 0, maximum: 10_000 } }),
  'denial-rate': optionsSchema({ ...COUNTING, threshold: { type: 'number', minimum: 0, maximum: 1 } }),
  'store-errors': optionsSchema({ ...COUNTING, threshold: { type: 'number', minimum: 0, maximum: 1 } }),
  'config-lag': optionsSchema({ ...TIMES, threshold: { type: 'number', minimum: 0, maximum: LONGEST_SECONDS } }),
  remindEverySeconds: { type: 'number', minimum: 0, maximum: LONGEST_SECONDS },
})
