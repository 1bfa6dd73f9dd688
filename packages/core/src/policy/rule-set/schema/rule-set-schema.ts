import { ruleSchemas } from './algorithm-schemas.ts'
import { DESCRIPTOR_SCHEMAS } from './descriptor-schemas.ts'
import {
  ENTRY_NAME,
  EXPIRES_AT,
  FILE_ENTRY_SCHEMAS,
  INSTANT,
  INSTANT_IN_FILE,
  LIVE_ENTRY_SCHEMAS,
} from './live-entry-schemas.ts'
import type { JsonSchema } from './rule-set-json-schema.ts'
import { RULE_SETTINGS } from './rule-settings-schema.ts'
import { VALUE_SCHEMAS } from './rule-value-schemas.ts'

const rules: JsonSchema = { type: 'array', items: { $ref: '#/$defs/rule' } }

const texts: JsonSchema = { type: 'array', minItems: 1, items: { type: 'string', minLength: 1 } }

const tier: JsonSchema = {
  title: 'a tier such as { name: "premium", multiplier: 10 }',
  type: 'object',
  properties: {
    name: ENTRY_NAME,
    multiplier: { $ref: '#/$defs/multiplier', description: 'Multiplies the limits of its callers. Default: 1.' },
    burst: {
      $ref: '#/$defs/amount',
      description:
        'Units that may pass at once on top of the limit. Windows with rollover, or with a calendar window among ' +
        'several, have no room for them and go without. Default: none.',
    },
    entitled: {
      description: 'Whether bursts of hybrid rules may be used. Default: false.',
      examples: [true],
      type: 'boolean',
    },
    rules: {
      ...rules,
      description: 'Rules that stand in the place of those for all; taken as they are, without multiplier and burst.',
      examples: [[{ resource: '/export', dimension: 'tenant', limit: 10, window: '1h' }]],
    },
  },
  required: ['name'],
  additionalProperties: false,
}

const match: JsonSchema = {
  title: 'at least one of resource, methods, dimension and entities, cidrs, services',
  description: 'Which requests are meant; every part that is given must hold.',
  examples: [{ cidrs: ['10.0.0.0/8'] }],
  type: 'object',
  properties: {
    resource: { $ref: '#/$defs/resource' },
    methods: { $ref: '#/$defs/methods' },
    dimension: { $ref: '#/$defs/dimension', description: 'With entities: the dimension that these belong to.' },
    entities: { ...texts, description: 'With dimension: who.', examples: [['user-17', 'user-18']] },
    cidrs: {
      ...texts,
      description: 'Address blocks, or single addresses.',
      examples: [['10.0.0.0/8', '2001:db8::/32', '192.0.2.7']],
    },
    services: { ...texts, description: 'Names of internal services.', examples: [['billing']] },
  },
  minProperties: 1,
  dependentRequired: { dimension: ['entities'], entities: ['dimension'] },
  additionalProperties: false,
}

const exemption: JsonSchema = {
  title: 'an exemption such as { name: "health", match: { resource: "/health" } }',
  type: 'object',
  properties: {
    name: ENTRY_NAME,
    match: { $ref: '#/$defs/match' },
    rules: {
      ...rules,
      description: 'Rules that hold for these requests instead. Default: none at all.',
      examples: [[{ resource: '*', dimension: 'service', limit: 1000, window: '1s' }]],
    },
  },
  required: ['name', 'match'],
  additionalProperties: false,
}

const denyEntry: JsonSchema = {
  title: 'an entry such as { name: "scrapers", match: { cidrs: ["192.0.2.0/24"] } }',
  type: 'object',
  properties: { name: ENTRY_NAME, match: { $ref: '#/$defs/match' }, expiresAt: EXPIRES_AT },
  required: ['name', 'match'],
  additionalProperties: false,
}

/** The parts of a rule set, as its type has them. */
const PARTS: Readonly<Record<string, JsonSchema>> = {
  rules: {
    ...rules,
    description: 'Who may do how much. Their order does not matter: the most specific one holds.',
    examples: [[{ resource: '*', dimension: 'ip', limit: 100, window: '1m' }]],
  },
  dimensions: {
    description:
      'Descriptors that rules count by, besides the built-in dimensions. A rule that counts by one that is not ' +
      'listed here is warned about. Default: none.',
    examples: [['plan', 'region']],
    type: 'array',
    uniqueItems: true,
    items: {
      title: 'the name of a descriptor such as "plan"',
      examples: ['plan'],
      type: 'string',
      pattern: '^[A-Za-z][A-Za-z0-9_.-]{0,63}$',
    },
  },
  tiers: {
    description: 'Named groups of callers, with other limits.',
    examples: [[{ name: 'premium', multiplier: 10, burst: 100 }]],
    type: 'array',
    items: { $ref: '#/$defs/tier' },
  },
  exemptions: {
    description: 'Requests that the rules are not for.',
    examples: [[{ name: 'health', match: { resource: '/health' } }]],
    type: 'array',
    items: { $ref: '#/$defs/exemption' },
  },
  denyList: {
    description: 'Requests that are always denied.',
    examples: [[{ name: 'scrapers', match: { cidrs: ['192.0.2.0/24'] } }]],
    type: 'array',
    items: { $ref: '#/$defs/denyEntry' },
  },
  regions: {
    $ref: '#/$defs/regions',
    description: 'Multipliers by region of the request, for rules that do not have their own.',
  },
  incident: {
    $ref: '#/$defs/multiplier',
    description: 'Multiplier while an incident is declared, for rules that do not have their own. Default: 1.',
  },
  errorRate: { $ref: '#/$defs/errorRate' },
  domains: {
    description: 'Trees of descriptors, as the Envoy protocol asks for them.',
    examples: [[{ domain: 'shop', descriptors: [{ key: 'ip', limit: { unit: 'minute', requestsPerUnit: 60 } }] }]],
    type: 'array',
    items: { $ref: '#/$defs/domain' },
  },
}

const DEFINITIONS: Readonly<Record<string, JsonSchema>> = {
  ...VALUE_SCHEMAS,
  ...ruleSchemas(RULE_SETTINGS),
  tier,
  match,
  exemption,
  denyEntry,
  ...DESCRIPTOR_SCHEMAS,
}

/**
 * A rule set as it is written in a file such as `sluice.yaml`: the rule set, and beside it overrides and members.
 * Everything that is known about the form of a file stands here; editors read it from `sluice.schema.json`.
 */
export const RULE_SET_FILE_SCHEMA: JsonSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'a rule set such as { rules: [{ resource: "*", dimension: "ip", limit: 100, window: "1m" }] }',
  description: 'The rules of a Sluice service: who may do how much.',
  type: 'object',
  properties: {
    $schema: {
      description: 'Where editors find this schema.',
      examples: ['./sluice.schema.json'],
      type: 'string',
    },
    version: { description: 'Version of the form of this file. Default: 1.', examples: [1], const: 1 },
    service: {
      description: 'Settings of the service that reads this file, by their names; the service checks them.',
      examples: [{ port: 8080 }],
      type: 'object',
    },
    gateway: {
      description: 'Settings of the gateway as a whole; the gateway checks them.',
      examples: [{ trustedProxies: ['10.0.0.0/8'] }],
      type: 'object',
    },
    routes: {
      description: 'Which requests the gateway passes on, and to which upstream; the gateway checks them.',
      examples: [[{ name: 'orders', match: { path: '/orders/*' }, upstream: 'shop' }]],
      type: 'array',
    },
    upstreams: {
      description: 'The servers behind the gateway, by name; the gateway checks them.',
      examples: [{ shop: { instances: [{ url: 'http://127.0.0.1:3000' }] } }],
      type: 'object',
    },
    ...PARTS,
    overrides: {
      description: 'Other numbers for single callers.',
      examples: [[{ dimension: 'tenant', entity: 'acme', resource: '*', terms: { multiplier: 5 } }]],
      type: 'array',
      items: { $ref: '#/$defs/override' },
    },
    members: {
      description: 'Which callers belong to which tier.',
      examples: [[{ dimension: 'tenant', entity: 'acme', tier: 'premium' }]],
      type: 'array',
      items: { $ref: '#/$defs/membership' },
    },
  },
  required: ['rules'],
  additionalProperties: false,
  $defs: { ...DEFINITIONS, instant: INSTANT_IN_FILE, ...FILE_ENTRY_SCHEMAS },
}

/**
 * A rule set as it is kept and sent: no more than its type has, instants in milliseconds. Its parts check live entries.
 */
export const RULE_SET_SCHEMA: JsonSchema = {
  ...RULE_SET_FILE_SCHEMA,
  properties: PARTS,
  $defs: { ...DEFINITIONS, instant: INSTANT, ...LIVE_ENTRY_SCHEMAS },
}
