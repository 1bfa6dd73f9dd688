import type { JsonSchema } from '@sluice/core/internal'

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
