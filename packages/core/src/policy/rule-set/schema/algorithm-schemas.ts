import {
  BURST_BUCKET_OPTIONS,
  DEFAULT_ALGORITHM,
  EXPECTED_WINDOWS,
  MOST_SEGMENTS,
  MOST_WINDOWS,
  RULE_OPTIONS,
  type RuleOption,
  type ValueKind,
  WINDOW_ENTRY_OPTIONS,
} from '../../../rule/rule-options.ts'
import type { JsonSchema } from './rule-set-json-schema.ts'

type Options = Readonly<Record<string, RuleOption>>

/** The options that the algorithm of a rule may have. */
export const ALGORITHM_OPTIONS: readonly string[] = [
  ...new Set(['algorithm', ...Object.values(RULE_OPTIONS).flatMap((options) => Object.keys(options))]),
]

/** What an option is for, by its name; where algorithms differ, by their name and its. */
const DESCRIPTIONS: Readonly<Record<string, string>> = {
  limit: 'Units allowed in each window. 0 denies all, "off" does not limit at all.',
  'hybrid limit': 'Units for all in each window. 0 denies all, "off" does not limit at all.',
  'concurrency limit': 'Most slots held at once. 0 denies all, "off" does not limit at all.',
  'windows limit': 'Units allowed in each window; 0 denies all.',
  window: 'Length of the window.',
  burst: 'The most units that may pass at one instant.',
  'hybrid burst': 'A token bucket on top, for callers that are entitled to it.',
  windows: 'Several windows at once, decided together; instead of limit and window.',
  capacity: 'Most units at once; may be fractional. 0 denies all, "off" does not limit at all.',
  'burst capacity': 'Most tokens at once; may be fractional.',
  refillPerSecond: 'Tokens that come back in a second.',
  leakPerSecond: 'Units that flow off in a second.',
  ratePerSecond: 'Units let out in a second.',
  rollover: 'Unused units carry over to the next window, up to twice the limit in all.',
  'token-bucket rollover':
    'Tokens that find the bucket full roll over, up to twice the capacity in all. Default: false.',
  segments: 'Number of parts of the window that are counted, in constant memory, instead of every call.',
  lease: 'A slot that is not renewed for so long comes back by itself.',
}

/** The schema of a kind of value. Those that are used more than once are definitions of their own, by their name. */
function valueSchema(kind: ValueKind): JsonSchema {
  switch (kind) {
    case 'flag':
      return { examples: [true], type: 'boolean' }
    case 'segments':
      return { examples: [60], type: 'integer', minimum: 1, maximum: MOST_SEGMENTS }
    case 'windows':
      return severalWindows('#/$defs/windowEntry')
    case 'calendarWindows':
      return severalWindows('#/$defs/calendarWindowEntry')
    case 'burstBucket':
      return {
        examples: [{ capacity: 50, refillPerSecond: 1 }],
        type: 'object',
        properties: propertiesOf(BURST_BUCKET_OPTIONS, 'burst'),
        required: requiredOf(BURST_BUCKET_OPTIONS),
        additionalProperties: false,
      }
    default:
      return { $ref: `#/$defs/${kind}` }
  }
}

function severalWindows(entry: string): JsonSchema {
  return {
    title: `a list of ${EXPECTED_WINDOWS}`,
    examples: [
      [
        { limit: 10, window: '1s' },
        { limit: 1000, window: '1h' },
      ],
    ],
    type: 'array',
    minItems: 1,
    maxItems: MOST_WINDOWS,
    items: { $ref: entry },
  }
}

function windowEntry(window: ValueKind): JsonSchema {
  const options = { ...WINDOW_ENTRY_OPTIONS, window: { ...WINDOW_ENTRY_OPTIONS.window, kind: window } }
  return {
    title: 'a window such as { limit: 10, window: "1s" }',
    type: 'object',
    properties: propertiesOf(options, 'windows'),
    required: requiredOf(options),
    additionalProperties: false,
  }
}

/** The schemas of options; `owner` is the algorithm, or the option that they are parts of. */
function propertiesOf(options: Options, owner: string): Readonly<Record<string, JsonSchema>> {
  return Object.fromEntries(
    Object.entries(options).map(([name, { kind }]) => {
      const { title, $ref, ...rules } = valueSchema(kind)
      const description = DESCRIPTIONS[`${owner} ${name}`] ?? DESCRIPTIONS[name]!
      const head = { ...(title === undefined ? {} : { title }), ...($ref === undefined ? {} : { $ref }), description }
      return [name, { ...head, ...rules }]
    }),
  )
}

function requiredOf(options: Options): readonly string[] {
  return Object.keys(options).filter((name) => options[name]!.isRequired)
}

/** Either one window or several. */
const ONE_OR_SEVERAL: readonly JsonSchema[] = [
  { required: ['limit', 'window'], properties: { windows: false } },
  { required: ['windows'], properties: { limit: false, window: false, burst: false } },
]

/** The schemas that a rule is made of, by the names that they refer to each other by; `rule` is the whole. */
export function ruleSchemas(settings: Readonly<Record<string, JsonSchema>>): Readonly<Record<string, JsonSchema>> {
  const settingsOf = Object.fromEntries(
    Object.keys(settings).map((name) => [name, { $ref: `#/$defs/settings/properties/${name}` }]),
  )
  return {
    windowEntry: windowEntry('duration'),
    calendarWindowEntry: windowEntry('durationOrCalendar'),
    settings: { description: 'What every rule may say.', type: 'object', properties: settings },
    rule: {
      title: 'a rule such as { resource: "/orders", dimension: "user", limit: 100, window: "1m" }',
      description: 'Who may do how much: resource and dimension, an algorithm and its numbers.',
      examples: [{ resource: '/orders', dimension: 'user', limit: 100, window: '1m' }],
      type: 'object',
      anyOf: Object.entries(RULE_OPTIONS).map(([algorithm, options]) => branchOf(algorithm, options, settingsOf)),
    },
  }
}

function branchOf(algorithm: string, options: Options, settings: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return {
    type: 'object',
    properties: {
      resource: settings['resource']!,
      dimension: settings['dimension']!,
      algorithm: {
        description: `How it is counted. Default: ${DEFAULT_ALGORITHM}.`,
        examples: [algorithm],
        const: algorithm,
      },
      ...propertiesOf(options, algorithm),
      ...settings,
    },
    required: [
      ...['resource', 'dimension'],
      ...(algorithm === DEFAULT_ALGORITHM ? [] : ['algorithm']),
      ...requiredOf(options),
    ],
    additionalProperties: false,
    ...('windows' in options ? { anyOf: ONE_OR_SEVERAL } : {}),
  }
}
