import { LONGEST_KEY } from '../../../store/key.ts'
import type { JsonSchema } from './rule-set-json-schema.ts'

/** An instant as it is kept and sent. */
export const INSTANT: JsonSchema = {
  title: 'milliseconds since 1970',
  description: 'An instant: milliseconds since 1970.',
  examples: [1_798_761_600_000],
  type: 'integer',
  minimum: 0,
  maximum: 8_640_000_000_000_000,
}

/** An instant as it may be written in a file, by people. */
export const INSTANT_IN_FILE: JsonSchema = {
  title:
    'an instant such as "2026-12-31T23:59:59Z" (with its zone) or "2026-12-31" (0:00 UTC), or milliseconds since 1970',
  description: 'An instant: a date (0:00 UTC), a date and time with its zone, or milliseconds since 1970.',
  examples: ['2026-12-31T23:59:59Z', '2026-12-31', 1_798_761_600_000],
  anyOf: [
    INSTANT,
    {
      title: 'an instant such as "2026-12-31T23:59:59Z"',
      examples: ['2026-12-31T23:59:59.5+01:00'],
      type: 'string',
      pattern:
        '^[0-9]{4}-[0-9]{2}-[0-9]{2}' +
        '(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\\.[0-9]{1,3})?)?(?:Z|[+-][0-9]{2}:[0-9]{2}))?$',
    },
  ],
}

/** When something ends by itself. */
export const EXPIRES_AT: JsonSchema = {
  $ref: '#/$defs/instant',
  description: 'From then on it has no effect. Default: never.',
}

/** Names of tiers, exemptions and deny entries stand in the names of rules, between two colons. */
export const ENTRY_NAME: JsonSchema = {
  title: '1 to 64 letters, digits or any of _ . @ -, beginning with a letter or digit',
  description: 'Its name, unique among its kind.',
  examples: ['premium'],
  type: 'string',
  pattern: '^[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}$',
}

const entity: JsonSchema = {
  description: 'Who, as requests name them: an id of a user, a key, a tenant, an address.',
  examples: ['user-17'],
  type: 'string',
  minLength: 1,
  maxLength: LONGEST_KEY,
}

const overrideTerms: JsonSchema = {
  title: 'one of limit (with window and burst), windows and multiplier',
  description: "What stands in the place of a rule's own numbers.",
  examples: [{ limit: 1000 }, { multiplier: 10 }],
  type: 'object',
  properties: {
    limit: { $ref: '#/$defs/units', description: 'Another limit; "off" does not limit at all.' },
    window: { $ref: '#/$defs/duration', description: 'With limit: another window.' },
    burst: { $ref: '#/$defs/amount', description: 'With limit: another burst.' },
    windows: {
      title: 'a list of 1 to 16 entries of { limit, window }',
      description: 'For rules with several windows.',
      examples: [[{ limit: 100, window: '1s' }]],
      type: 'array',
      minItems: 1,
      maxItems: 16,
      items: { $ref: '#/$defs/windowEntry' },
    },
    multiplier: { $ref: '#/$defs/multiplier', description: 'Multiplies all numbers of the rule.' },
  },
  additionalProperties: false,
  anyOf: [
    { required: ['limit'], properties: { windows: false, multiplier: false } },
    { required: ['windows'], properties: { limit: false, window: false, burst: false, multiplier: false } },
    { required: ['multiplier'], properties: { limit: false, window: false, burst: false, windows: false } },
  ],
}

const override: JsonSchema = {
  title: 'an override such as { dimension: "user", entity: "u1", resource: "*", terms: { limit: 1000 } }',
  type: 'object',
  properties: {
    dimension: { $ref: '#/$defs/dimension' },
    entity: { $ref: '#/$defs/entity' },
    resource: {
      $ref: '#/$defs/resource',
      description: 'The resource of the rules it is for, as they write it; * for every rule of the dimension.',
    },
    terms: { $ref: '#/$defs/overrideTerms' },
    expiresAt: EXPIRES_AT,
  },
  required: ['dimension', 'entity', 'resource', 'terms'],
  additionalProperties: false,
}

const membership: JsonSchema = {
  title: 'a member such as { dimension: "tenant", entity: "acme", tier: "premium" }',
  type: 'object',
  properties: {
    dimension: {
      description: 'What kind of identity belongs to the tier.',
      examples: ['tenant'],
      enum: ['user', 'apiKey', 'tenant'],
    },
    entity: { $ref: '#/$defs/entity' },
    tier: { ...ENTRY_NAME, description: 'Name of the tier.' },
    expiresAt: EXPIRES_AT,
  },
  required: ['dimension', 'entity', 'tier'],
  additionalProperties: false,
}

const block: JsonSchema = {
  title: 'a block such as { dimension: "user", entity: "u1", until, strikes: 1, forgottenAt }',
  type: 'object',
  properties: {
    dimension: { $ref: '#/$defs/dimension' },
    entity: { $ref: '#/$defs/entity' },
    until: { $ref: '#/$defs/instant', description: 'The block ends then.' },
    strikes: {
      description: 'How many blocks there were, this one included, since the caller was last forgotten.',
      examples: [1],
      type: 'integer',
      minimum: 1,
    },
    forgottenAt: { $ref: '#/$defs/instant', description: 'Strikes are remembered until then.' },
    rule: {
      description: 'The rule that led to it; left out when it was set by hand.',
      examples: ['login'],
      type: 'string',
    },
    reason: { description: 'Why, in words.', examples: ['abuse report 4711'], type: 'string', maxLength: 1000 },
  },
  required: ['dimension', 'entity', 'until', 'strikes', 'forgottenAt'],
  additionalProperties: false,
}

const incident: JsonSchema = {
  title: 'an incident such as { active: true }',
  type: 'object',
  properties: {
    active: { description: 'Whether it is declared, which cuts limits.', examples: [true], type: 'boolean' },
    until: { $ref: '#/$defs/instant', description: 'Ends by itself then. Default: not by itself.' },
  },
  required: ['active'],
  additionalProperties: false,
}

/** What may stand in a file beside the rules. */
export const FILE_ENTRY_SCHEMAS: Readonly<Record<string, JsonSchema>> = { entity, overrideTerms, override, membership }

/** What changes without a new rule set. */
export const LIVE_ENTRY_SCHEMAS: Readonly<Record<string, JsonSchema>> = { ...FILE_ENTRY_SCHEMAS, block, incident }
