import { FAILURE_MODES, WEEKDAYS } from '../../../rule/rule-options.ts'
import { LONGEST_RULE_NAME, RESERVED_NAME } from '../../matching/rule-name.ts'
import type { JsonSchema } from './rule-set-json-schema.ts'

const timeOfDay: JsonSchema = {
  title: 'a time of day such as "08:30"',
  description: 'Time of day, HH:MM. A span whose end is not after its beginning goes on into the next day.',
  examples: ['08:30', '22:00'],
  type: 'string',
  pattern: '^(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]|24:00)$',
}

const scheduleEntry: JsonSchema = {
  title: 'a schedule entry such as { from: "22:00", to: "06:00", multiplier: 2 }',
  type: 'object',
  properties: {
    days: {
      description: 'Days on which the span begins. Default: every day.',
      examples: [['saturday', 'sunday']],
      type: 'array',
      minItems: 1,
      uniqueItems: true,
      items: { enum: WEEKDAYS },
    },
    from: timeOfDay,
    to: timeOfDay,
    timeZone: { description: 'IANA name. Default: UTC.', examples: ['Europe/Berlin'], type: 'string' },
    multiplier: { $ref: '#/$defs/multiplier' },
  },
  required: ['from', 'to', 'multiplier'],
  additionalProperties: false,
}

const penalty: JsonSchema = {
  description: 'Blocks a caller that goes on after being denied.',
  examples: [{ after: 10, within: '1m', block: '5m' }],
  type: 'object',
  properties: {
    after: {
      description: 'Number of denials that lead to a block.',
      examples: [10],
      type: 'integer',
      minimum: 1,
      maximum: 100_000,
    },
    within: { $ref: '#/$defs/duration', description: 'The time within which they have to come.' },
    block: { $ref: '#/$defs/duration', description: 'Length of the first block.' },
    growth: {
      description: 'Each further block is longer by this factor. Default: 2. With 1 all are equal.',
      examples: [2],
      type: 'number',
      minimum: 1,
      maximum: 1000,
    },
    longest: {
      $ref: '#/$defs/duration',
      description: 'Maximum length of a block. Default: 1 day, or the first block if that is longer.',
    },
    forgetAfter: {
      $ref: '#/$defs/duration',
      description: 'A caller without a block for so long starts again with the first. Default: 1 day.',
    },
    reset: {
      description: 'Whether the counters of the rule start afresh when the block ends. Default: false.',
      examples: [true],
      type: 'boolean',
    },
  },
  required: ['after', 'within', 'block'],
  additionalProperties: false,
}

const cost: JsonSchema = {
  title: 'a whole number of units, { descriptor: "bytes", per: 1024 } or { function: "name" }',
  description:
    'Units a call takes, times the cost of the request: a number, a number of the request (rounded up), or what a ' +
    'function given in code says. Default: 1.',
  examples: [5, { descriptor: 'bytes', per: 1024 }, { function: 'tokens' }],
  anyOf: [
    { $ref: '#/$defs/amount' },
    {
      type: 'object',
      properties: {
        descriptor: {
          description: 'The descriptor that holds a number.',
          examples: ['bytes'],
          type: 'string',
          minLength: 1,
        },
        per: {
          description: 'So much of it is one unit. Default: 1.',
          examples: [1024],
          type: 'number',
          exclusiveMinimum: 0,
        },
      },
      required: ['descriptor'],
      additionalProperties: false,
    },
    {
      type: 'object',
      properties: {
        function: {
          description: 'Name of a function passed to the engine.',
          examples: ['tokens'],
          type: 'string',
          minLength: 1,
        },
      },
      required: ['function'],
      additionalProperties: false,
    },
  ],
}

/** What every rule may say besides its algorithm. */
export const RULE_SETTINGS: Readonly<Record<string, JsonSchema>> = {
  resource: { $ref: '#/$defs/resource' },
  dimension: { $ref: '#/$defs/dimension' },
  name: {
    title:
      `1 to ${LONGEST_RULE_NAME} letters, digits or any of _ . : / * @ -, beginning with a letter, a digit, / or ` +
      '*, and not with "tier:", "exemption:", "shadow:", "penalty:", "descriptors:" or "default:"',
    description: 'Counters belong to it; unique in the rule set. Default: made of methods, resource and dimension.',
    examples: ['orders-per-user'],
    type: 'string',
    pattern: `^(?!${RESERVED_NAME.source})[A-Za-z0-9/*][A-Za-z0-9_.:/*@-]{0,${LONGEST_RULE_NAME - 1}}$`,
  },
  methods: { $ref: '#/$defs/methods' },
  always: {
    description:
      'Whether it holds beside the other rules of its dimension, takes the place of none and leaves its own to ' +
      'none. Default: false.',
    examples: [true],
    type: 'boolean',
  },
  cost,
  failureMode: {
    description:
      'How to decide while the store is unavailable: allow all (open), deny all (closed), or decide on this node ' +
      'with its share of the limit (local).',
    examples: ['local'],
    enum: FAILURE_MODES,
  },
  shadow: {
    description: 'Evaluated and measured, never enforced. It takes the place of no other rule.',
    examples: [true],
    type: 'boolean',
  },
  percent: {
    description:
      'Share of callers it is enforced for, 0 to 100; for the others it is in shadow, and a less specific rule ' +
      'holds. Default: 100.',
    examples: [10],
    type: 'number',
    minimum: 0,
    maximum: 100,
  },
  regions: { $ref: '#/$defs/regions' },
  schedule: {
    description: 'Times of the week with another limit. Of several entries that cover an instant, the first counts.',
    examples: [[{ days: ['saturday', 'sunday'], from: '00:00', to: '00:00', multiplier: 2 }]],
    type: 'array',
    items: scheduleEntry,
  },
  incident: {
    $ref: '#/$defs/multiplier',
    description: 'Multiplier while an incident is declared; 1 leaves the rule alone.',
  },
  errorRate: { $ref: '#/$defs/errorRate' },
  penalty,
  announce: {
    description:
      'False: the rule decides, and no header tells callers of it. When it denies, they learn how long to wait, and ' +
      'nothing else. Default: true.',
    examples: [false],
    type: 'boolean',
  },
  enabled: {
    description: 'False keeps the rule in the set without any effect. Default: true.',
    examples: [false],
    type: 'boolean',
  },
}
