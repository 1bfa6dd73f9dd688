import {
  CALENDAR_DEFAULTS,
  CALENDAR_PERIODS,
  EXPECTED_RATE,
  expectedBucket,
  expectedWhole,
  LARGEST_UNITS,
  SLOWEST_RATE,
  WEEKDAYS,
} from '../../../rule/rule-options.ts'
import type { JsonSchema } from './rule-set-json-schema.ts'

/** Multipliers above it are taken for mistakes. */
const LARGEST_MULTIPLIER = 1_000_000

/** Values that several parts of a rule set are made of. */
export const VALUE_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  duration: {
    title: 'a duration such as "250ms", "1m" or "1h30m", or a number of milliseconds above 0',
    description:
      'A length of time: number and unit (ms, s, m, h, d, w), also several in a row; a bare number is milliseconds.',
    examples: ['1m', '250ms', '1h30m', 60_000],
    anyOf: [
      { type: 'number', exclusiveMinimum: 0 },
      {
        title: 'a duration such as "1m"',
        examples: ['1m', '1.5 h', '2d12h'],
        type: 'string',
        maxLength: 40,
        pattern: '^(?:[0-9]+(?:\\.[0-9]+)?\\s?(?:ms|s|m|h|d|w))+$',
      },
    ],
  },
  calendar: {
    title: 'a calendar period such as { calendar: "month" }',
    description:
      'A window that follows the calendar: a month from the 1st to the last day, a day from midnight to midnight.',
    examples: [{ calendar: 'month', timeZone: 'Europe/Berlin' }],
    type: 'object',
    properties: {
      calendar: {
        description: 'The period.',
        examples: ['month'],
        enum: CALENDAR_PERIODS,
      },
      timeZone: {
        description: `IANA name of the time zone. Default: ${CALENDAR_DEFAULTS.timeZone}.`,
        examples: ['Europe/Berlin'],
        type: 'string',
      },
      weekStart: {
        description: `First day of the week. Default: ${CALENDAR_DEFAULTS.weekStart}.`,
        examples: [CALENDAR_DEFAULTS.weekStart],
        enum: WEEKDAYS,
      },
    },
    required: ['calendar'],
    additionalProperties: false,
  },
  durationOrCalendar: {
    title: 'a duration such as "1m", or a calendar period such as { calendar: "month" }',
    description: 'Length of the window, or a period of the calendar.',
    examples: ['1m', { calendar: 'month' }],
    anyOf: [{ $ref: '#/$defs/duration' }, { $ref: '#/$defs/calendar' }],
  },
  amount: {
    title: expectedWhole(0, LARGEST_UNITS),
    description: 'A number of units.',
    examples: [100],
    type: 'integer',
    minimum: 0,
    maximum: LARGEST_UNITS,
  },
  units: {
    title: `${expectedWhole(0, LARGEST_UNITS)}, or "off"`,
    description: 'Units allowed. 0 denies all, "off" does not limit at all.',
    examples: [100, 'off'],
    anyOf: [{ $ref: '#/$defs/amount' }, { const: 'off' }],
  },
  bucketAmount: {
    title: `0, or ${expectedBucket(LARGEST_UNITS)}`,
    description: 'Units that a bucket holds; fractions are kept to the millionth.',
    examples: [100, 2.5],
    anyOf: [{ const: 0 }, { type: 'number', minimum: 1, maximum: LARGEST_UNITS }],
  },
  bucketUnits: {
    title: `0, ${expectedBucket(LARGEST_UNITS)}, or "off"`,
    description: 'Units that a bucket holds. 0 denies all, "off" does not limit at all.',
    examples: [100, 2.5, 'off'],
    anyOf: [{ $ref: '#/$defs/bucketAmount' }, { const: 'off' }],
  },
  ratePerSecond: {
    title: EXPECTED_RATE,
    description: 'Units per second; fractions such as 0.1 are fine.',
    examples: [10, 0.5],
    type: 'number',
    minimum: SLOWEST_RATE,
    maximum: LARGEST_UNITS,
  },
  multiplier: {
    description: 'Multiplies limits: 2 doubles them, 0.5 halves them.',
    examples: [2],
    type: 'number',
    exclusiveMinimum: 0,
    maximum: LARGEST_MULTIPLIER,
  },
  regions: {
    description: 'Multipliers by region of the request.',
    examples: [{ US: 2, DE: 0.5 }],
    type: 'object',
    propertyNames: { title: 'a region of 1 to 64 characters', type: 'string', minLength: 1, maxLength: 64 },
    additionalProperties: { $ref: '#/$defs/multiplier' },
  },
  resource: {
    title: 'a resource such as "/orders/:id", "/files/*", "*" or "checkout"',
    description:
      'What is called: a path, with :name for any one segment and /* at the end for all below; * for everything; ' +
      'or a name without a slash.',
    examples: ['/orders/:id', '/files/*', '*', 'checkout'],
    type: 'string',
    minLength: 1,
    maxLength: 2048,
  },
  dimension: {
    title:
      'a dimension such as "ip", "user", "apiKey", "tenant", "service", "global", a descriptor, or several joined ' +
      'by "+"',
    description:
      'Who is counted: ip, user, apiKey, tenant, service (the internal service that calls), global (all together), ' +
      'the name of a descriptor of the request, or several joined by + for each combination.',
    examples: ['user', 'ip', 'tenant+user'],
    type: 'string',
    pattern: '^[A-Za-z][A-Za-z0-9_.-]{0,63}(?:\\+[A-Za-z][A-Za-z0-9_.-]{0,63})*$',
  },
  methods: {
    description: 'HTTP methods it is for. Default: all.',
    examples: [['GET'], ['POST', 'PUT']],
    type: 'array',
    minItems: 1,
    uniqueItems: true,
    items: {
      title: 'an HTTP method such as "GET"',
      examples: ['GET'],
      type: 'string',
      pattern: '^[A-Za-z][A-Za-z_-]{0,31}$',
    },
  },
  errorRate: {
    description: 'Cuts limits while too many calls fail, and gives them back step by step.',
    examples: [
      { cutAbove: 0.2, restoreBelow: 0.05, window: '30s', leastCalls: 50, step: 0.5, least: 0.1, hold: '10s' },
    ],
    type: 'object',
    properties: {
      cutAbove: {
        description: 'Share of failed calls, 0 to 1, above which limits are cut.',
        examples: [0.2],
        type: 'number',
        minimum: 0,
        maximum: 1,
      },
      restoreBelow: {
        title: 'a number above 0 and at most 1',
        description: 'Share of failed calls below which limits are given back; not above cutAbove.',
        examples: [0.05],
        type: 'number',
        exclusiveMinimum: 0,
        maximum: 1,
      },
      window: { $ref: '#/$defs/duration', description: 'Span over which calls are counted.' },
      leastCalls: {
        description: 'Fewer calls in the span say nothing.',
        examples: [50],
        type: 'integer',
        minimum: 1,
      },
      step: {
        description: 'Each cut multiplies the limit by this, each step back divides by it.',
        examples: [0.5],
        type: 'number',
        exclusiveMinimum: 0,
        exclusiveMaximum: 1,
      },
      least: {
        title: 'a number above 0 and at most 1',
        description: 'Limits are never cut below this share.',
        examples: [0.1],
        type: 'number',
        exclusiveMinimum: 0,
        maximum: 1,
      },
      hold: { $ref: '#/$defs/duration', description: 'Time between two steps.' },
    },
    required: ['cutAbove', 'restoreBelow', 'window', 'leastCalls', 'step', 'least', 'hold'],
    additionalProperties: false,
  },
}
