import type { JsonSchema } from './json-schema.ts'

/** The options that the algorithm of a rule may have. */
export const ALGORITHM_OPTIONS: readonly string[] = [
  ...['algorithm', 'limit', 'window', 'burst', 'windows', 'rollover', 'segments'],
  ...['capacity', 'refillPerSecond', 'leakPerSecond', 'ratePerSecond', 'lease'],
]

/** An algorithm: its options, and which of them are needed. */
interface AlgorithmForm {
  readonly options: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  /** Whether it has either one window or several. */
  readonly isWindowed?: boolean
}

const burst: JsonSchema = { $ref: '#/$defs/amount', description: 'The most units that may pass at one instant.' }

function windowed(window: '#/$defs/duration' | '#/$defs/durationOrCalendar'): Readonly<Record<string, JsonSchema>> {
  return {
    limit: {
      $ref: '#/$defs/units',
      description: 'Units allowed in each window. 0 denies all, "off" does not limit at all.',
    },
    window: { $ref: window, description: 'Length of the window.' },
    burst,
    windows: {
      title: 'a list of 1 to 16 entries of { limit, window }',
      description: 'Several windows at once, decided together; instead of limit and window.',
      examples: [
        [
          { limit: 10, window: '1s' },
          { limit: 1000, window: '1h' },
        ],
      ],
      type: 'array',
      minItems: 1,
      maxItems: 16,
      items: {
        $ref: window === '#/$defs/duration' ? '#/$defs/windowEntry' : '#/$defs/calendarWindowEntry',
      },
    },
  }
}

function windowEntry(window: string): JsonSchema {
  return {
    title: 'a window such as { limit: 10, window: "1s" }',
    type: 'object',
    properties: {
      limit: { $ref: '#/$defs/amount', description: 'Units allowed in each window; 0 denies all.' },
      window: { $ref: window },
      burst,
    },
    required: ['limit', 'window'],
    additionalProperties: false,
  }
}

const capacity: JsonSchema = {
  $ref: '#/$defs/bucketUnits',
  description: 'Most units at once; may be fractional. 0 denies all, "off" does not limit at all.',
}

const ALGORITHMS: Readonly<Record<string, AlgorithmForm>> = {
  gcra: { options: windowed('#/$defs/duration'), isWindowed: true },
  'fixed-window': {
    options: {
      ...windowed('#/$defs/durationOrCalendar'),
      rollover: {
        description: 'Unused units carry over to the next window, up to twice the limit in all.',
        examples: [true],
        type: 'boolean',
      },
    },
    isWindowed: true,
  },
  'sliding-window-counter': { options: windowed('#/$defs/duration'), isWindowed: true },
  'sliding-window-log': {
    options: {
      ...windowed('#/$defs/duration'),
      segments: {
        description: 'Counts in so many parts of the window, in constant memory, instead of remembering every call.',
        examples: [60],
        type: 'integer',
        minimum: 1,
        maximum: 1000,
      },
    },
    isWindowed: true,
  },
  'token-bucket': {
    options: {
      capacity,
      refillPerSecond: { $ref: '#/$defs/ratePerSecond', description: 'Tokens that come back in a second.' },
      rollover: {
        description: 'Tokens that find the bucket full roll over, up to twice the capacity in all. Default: false.',
        examples: [true],
        type: 'boolean',
      },
    },
    required: ['capacity', 'refillPerSecond'],
  },
  'leaky-bucket-meter': {
    options: {
      capacity,
      leakPerSecond: { $ref: '#/$defs/ratePerSecond', description: 'Units that flow off in a second.' },
    },
    required: ['capacity', 'leakPerSecond'],
  },
  'leaky-bucket-queue': {
    options: { capacity, ratePerSecond: { $ref: '#/$defs/ratePerSecond', description: 'Units let out in a second.' } },
    required: ['capacity', 'ratePerSecond'],
  },
  hybrid: {
    options: {
      limit: {
        $ref: '#/$defs/units',
        description: 'Units for all in each window. 0 denies all, "off" does not limit at all.',
      },
      window: { $ref: '#/$defs/durationOrCalendar' },
      burst: {
        description: 'A token bucket on top, for callers that are entitled to it.',
        examples: [{ capacity: 50, refillPerSecond: 1 }],
        type: 'object',
        properties: {
          capacity: { $ref: '#/$defs/bucketAmount', description: 'Most tokens at once; may be fractional.' },
          refillPerSecond: { $ref: '#/$defs/ratePerSecond', description: 'Tokens that come back in a second.' },
        },
        required: ['capacity', 'refillPerSecond'],
        additionalProperties: false,
      },
    },
    required: ['limit', 'window', 'burst'],
  },
  concurrency: {
    options: {
      limit: {
        $ref: '#/$defs/units',
        description: 'Most slots held at once. 0 denies all, "off" does not limit at all.',
      },
      lease: { $ref: '#/$defs/duration', description: 'A slot that is not renewed for so long comes back by itself.' },
    },
    required: ['limit', 'lease'],
  },
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
    windowEntry: windowEntry('#/$defs/duration'),
    calendarWindowEntry: windowEntry('#/$defs/durationOrCalendar'),
    settings: { description: 'What every rule may say.', type: 'object', properties: settings },
    rule: {
      title: 'a rule such as { resource: "/orders", dimension: "user", limit: 100, window: "1m" }',
      description: 'Who may do how much: resource and dimension, an algorithm and its numbers.',
      examples: [{ resource: '/orders', dimension: 'user', limit: 100, window: '1m' }],
      type: 'object',
      anyOf: Object.entries(ALGORITHMS).map(([algorithm, form]) => branchOf(algorithm, form, settingsOf)),
    },
  }
}

function branchOf(
  algorithm: string,
  { options, required = [], isWindowed = false }: AlgorithmForm,
  settings: Readonly<Record<string, JsonSchema>>,
): JsonSchema {
  return {
    type: 'object',
    properties: {
      resource: settings['resource']!,
      dimension: settings['dimension']!,
      algorithm: {
        description: 'How it is counted. Default: gcra.',
        examples: [algorithm],
        const: algorithm,
      },
      ...options,
      ...settings,
    },
    // The algorithm that is meant when none is named.
    required: ['resource', 'dimension', ...(algorithm === 'gcra' ? [] : ['algorithm']), ...required],
    additionalProperties: false,
    ...(isWindowed ? { anyOf: ONE_OR_SEVERAL } : {}),
  }
}
