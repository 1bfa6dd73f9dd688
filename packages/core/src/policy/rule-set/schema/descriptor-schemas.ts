import type { JsonSchema } from './rule-set-json-schema.ts'

const LARGEST_UINT32 = 4_294_967_295

const descriptorLimit: JsonSchema = {
  title:
    'a limit such as { unit: "minute", requestsPerUnit: 60 }, { window: "30s", requestsPerUnit: 5 } or ' +
    '{ unlimited: true }',
  description: 'The limit of what the descriptor matches.',
  examples: [
    { unit: 'minute', requestsPerUnit: 60 },
    { window: '30s', requestsPerUnit: 5, algorithm: 'gcra' },
  ],
  type: 'object',
  properties: {
    unit: {
      description: 'Length of the window, cut at UTC.',
      examples: ['minute'],
      enum: ['second', 'minute', 'hour', 'day', 'week', 'month', 'year'],
    },
    window: {
      $ref: '#/$defs/duration',
      description: 'Length of the window where it is no unit.',
      examples: ['30s'],
    },
    algorithm: {
      description: 'How requests are counted. Default: fixed-window.',
      examples: ['gcra'],
      enum: ['fixed-window', 'sliding-window-counter', 'sliding-window-log', 'gcra'],
      default: 'fixed-window',
    },
    requestsPerUnit: {
      description: 'Requests allowed in each window; 0 denies all.',
      examples: [60],
      type: 'integer',
      minimum: 0,
      maximum: LARGEST_UINT32,
    },
    unlimited: { description: 'Not limited at all.', examples: [true], type: 'boolean' },
    drain: {
      description:
        'A call with more hits than are left takes what is left, and is denied: for hits that have happened already, ' +
        'such as the tokens of an answer. Default: false, a denied call takes nothing.',
      examples: [true],
      type: 'boolean',
      default: false,
    },
    name: { description: 'Name of the limit, by which others replace it.', examples: ['orders'], type: 'string' },
    replaces: {
      description: 'Names of limits that are dropped from a request in which this one is matched too.',
      examples: [['orders']],
      type: 'array',
      items: { type: 'string', minLength: 1 },
    },
  },
  additionalProperties: false,
  anyOf: [
    { required: ['unit', 'requestsPerUnit'], properties: { unlimited: { const: false }, window: false } },
    { required: ['window', 'requestsPerUnit'], properties: { unlimited: { const: false }, unit: false } },
    {
      required: ['unlimited'],
      properties: { unlimited: { const: true }, unit: false, window: false, algorithm: false, drain: false },
    },
  ],
}

const descriptor: JsonSchema = {
  title: 'a descriptor such as { key: "ip", limit: { unit: "minute", requestsPerUnit: 60 } }',
  type: 'object',
  properties: {
    key: {
      description: 'What the entry of a request must be called.',
      examples: ['ip'],
      type: 'string',
      minLength: 1,
    },
    value: {
      description: 'What it must say, with * for anything. Default: any value, each counted on its own.',
      examples: ['/orders/*'],
      type: 'string',
    },
    limit: { $ref: '#/$defs/descriptorLimit' },
    descriptors: {
      description: 'What the next entry of the request must be.',
      examples: [[{ key: 'path', limit: { unit: 'second', requestsPerUnit: 5 } }]],
      type: 'array',
      items: { $ref: '#/$defs/descriptor' },
    },
    shadow: { description: 'Evaluated and measured, never enforced.', examples: [true], type: 'boolean' },
    quota: {
      description: 'Denies a request only when every matched limit of this kind is over.',
      examples: [true],
      type: 'boolean',
    },
    shareThreshold: {
      description: 'All values that a * stands for share one counter.',
      examples: [true],
      type: 'boolean',
    },
    detailedMetric: {
      description: 'The name for metrics that the library makes has all values. The service counts by domain only.',
      examples: [true],
      type: 'boolean',
    },
    valueToMetric: {
      description: 'The name for metrics that the library makes has this value. The service counts by domain only.',
      examples: [true],
      type: 'boolean',
    },
    metadata: {
      description: 'Free data that answers hand back while there is room: for Envoy as dynamic metadata.',
      examples: [{ owner: 'payments' }],
      type: 'object',
    },
  },
  required: ['key'],
  additionalProperties: false,
}

const domain: JsonSchema = {
  title: 'a domain such as { domain: "shop", descriptors: [] }',
  type: 'object',
  properties: {
    domain: { description: 'Name of the domain, unique.', examples: ['shop'], type: 'string', minLength: 1 },
    descriptors: {
      description: 'What the first entry of a request may be.',
      examples: [[{ key: 'ip', limit: { unit: 'minute', requestsPerUnit: 60 } }]],
      type: 'array',
      items: { $ref: '#/$defs/descriptor' },
    },
  },
  required: ['domain', 'descriptors'],
  additionalProperties: false,
}

/** Trees of descriptors, by the names that they refer to each other by; `domain` is the whole. */
export const DESCRIPTOR_SCHEMAS: Readonly<Record<string, JsonSchema>> = { descriptorLimit, descriptor, domain }
