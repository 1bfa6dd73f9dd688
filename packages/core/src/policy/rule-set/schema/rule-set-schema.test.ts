import { describe, expect, it } from 'vitest'
import type { CalendarWindow, WindowSpec } from '../../../rule/rule.ts'
import type { Block, Incident, Membership, Override, OverrideTerms } from '../../entries/live-entry.ts'
import type { RuleSetFile } from '../checks/rule-set-file.ts'
import { SchemaCheck } from '../checks/schema-check.ts'
import type { DescriptorDomain, DescriptorLimit, DescriptorNode } from '../descriptor-domain.ts'
import type {
  DenyEntry,
  ErrorRateCut,
  Exemption,
  Penalty,
  PolicyRule,
  RequestMatch,
  RuleSet,
  ScheduleEntry,
  Tier,
} from '../rule-set.ts'
import type { JsonSchema } from './rule-set-json-schema.ts'
import { RULE_SET_FILE_SCHEMA, RULE_SET_SCHEMA } from './rule-set-schema.ts'

type AnyKey<T> = T extends unknown ? keyof T : never

/** Every property of a type: one that is missing here, or too much, is an error of the compiler. */
type Properties<T> = Readonly<Record<Extract<AnyKey<T>, string>, true>>

const errorRate: Properties<ErrorRateCut> = {
  cutAbove: true,
  restoreBelow: true,
  window: true,
  leastCalls: true,
  step: true,
  least: true,
  hold: true,
}

const rule: Properties<PolicyRule> = {
  algorithm: true,
  limit: true,
  window: true,
  windows: true,
  burst: true,
  rollover: true,
  segments: true,
  capacity: true,
  refillPerSecond: true,
  leakPerSecond: true,
  ratePerSecond: true,
  lease: true,
  failureMode: true,
  name: true,
  resource: true,
  dimension: true,
  methods: true,
  always: true,
  announce: true,
  cost: true,
  shadow: true,
  percent: true,
  regions: true,
  schedule: true,
  incident: true,
  errorRate: true,
  penalty: true,
  enabled: true,
}

const penalty: Properties<Penalty> = {
  after: true,
  within: true,
  block: true,
  growth: true,
  longest: true,
  forgetAfter: true,
  reset: true,
}

const schedule: Properties<ScheduleEntry> = { days: true, from: true, to: true, timeZone: true, multiplier: true }

const tier: Properties<Tier> = { name: true, multiplier: true, burst: true, entitled: true, rules: true }

const match: Properties<RequestMatch> = {
  resource: true,
  methods: true,
  dimension: true,
  entities: true,
  cidrs: true,
  services: true,
}

const exemption: Properties<Exemption> = { name: true, match: true, rules: true }

const denyEntry: Properties<DenyEntry> = { name: true, match: true, expiresAt: true }

const descriptor: Properties<DescriptorNode> = {
  key: true,
  value: true,
  limit: true,
  descriptors: true,
  shadow: true,
  quota: true,
  shareThreshold: true,
  detailedMetric: true,
  valueToMetric: true,
  metadata: true,
}

const descriptorLimit: Properties<DescriptorLimit> = {
  unit: true,
  window: true,
  algorithm: true,
  requestsPerUnit: true,
  unlimited: true,
  drain: true,
  name: true,
  replaces: true,
}

const domain: Properties<DescriptorDomain> = { domain: true, descriptors: true }

const overrideTerms: Properties<OverrideTerms> = {
  limit: true,
  window: true,
  burst: true,
  windows: true,
  multiplier: true,
}

const override: Properties<Override> = { dimension: true, entity: true, resource: true, terms: true, expiresAt: true }

const membership: Properties<Membership> = { dimension: true, entity: true, tier: true, expiresAt: true }

const block: Properties<Block> = {
  dimension: true,
  entity: true,
  until: true,
  strikes: true,
  forgottenAt: true,
  rule: true,
  reason: true,
}

const incident: Properties<Incident> = { active: true, until: true }

const windowEntry: Properties<WindowSpec> = { limit: true, window: true, burst: true }

const calendar: Properties<CalendarWindow> = { calendar: true, timeZone: true, weekStart: true }

const ruleSet: Properties<RuleSet> = {
  rules: true,
  dimensions: true,
  tiers: true,
  exemptions: true,
  denyList: true,
  regions: true,
  incident: true,
  errorRate: true,
  domains: true,
}

const ruleSetFile: Properties<RuleSetFile> = {
  ...ruleSet,
  $schema: true,
  version: true,
  service: true,
  gateway: true,
  routes: true,
  upstreams: true,
  overrides: true,
  members: true,
}

const DEFINITIONS = RULE_SET_SCHEMA.$defs!
const SETTINGS = DEFINITIONS['settings']!.properties as Readonly<Record<string, JsonSchema>>

/** The properties that a schema knows, also those of its branches. */
function known({ properties = {}, anyOf = [] }: JsonSchema): Set<string> {
  return new Set([...Object.keys(properties), ...anyOf.flatMap((branch) => [...known(branch)])])
}

/** Every schema in a schema, with its place, but what references lead to. */
function allSchemas(schema: JsonSchema, path: string): [string, JsonSchema][] {
  const { properties = {}, anyOf = [], items, additionalProperties, propertyNames, $defs = {} } = schema
  return [
    [path, schema],
    ...Object.entries(properties).flatMap(([name, one]) =>
      one === false ? [] : allSchemas(one, `${path}/properties/${name}`),
    ),
    ...anyOf.flatMap((one, index) => allSchemas(one, `${path}/anyOf/${index}`)),
    ...(items === undefined ? [] : allSchemas(items, `${path}/items`)),
    ...(typeof additionalProperties === 'object'
      ? allSchemas(additionalProperties, `${path}/additionalProperties`)
      : []),
    ...(propertyNames === undefined ? [] : allSchemas(propertyNames, `${path}/propertyNames`)),
    ...Object.entries($defs).flatMap(([name, one]) => allSchemas(one, `${path}/$defs/${name}`)),
  ]
}

const SCHEMAS = [RULE_SET_FILE_SCHEMA, RULE_SET_SCHEMA].flatMap((root) =>
  allSchemas(root, '#').map(([path, schema]) => ({ root, path, schema })),
)

/** The schema that a property is described by: what is said beside a reference, else what it leads to. */
function described(root: JsonSchema, schema: JsonSchema): JsonSchema {
  if (schema.$ref === undefined) return schema
  const target = schema.$ref
    .split('/')
    .slice(1)
    .reduce((place, name) => (place as unknown as Record<string, JsonSchema>)[name]!, root)
  return { ...described(root, target), ...schema }
}

describe('the schema of rule sets', () => {
  it.each([
    ['a rule set', RULE_SET_SCHEMA, ruleSet],
    ['a file', RULE_SET_FILE_SCHEMA, ruleSetFile],
    ['a rule', DEFINITIONS['rule']!, rule],
    ['a tier', DEFINITIONS['tier']!, tier],
    ['a match', DEFINITIONS['match']!, match],
    ['an exemption', DEFINITIONS['exemption']!, exemption],
    ['a deny entry', DEFINITIONS['denyEntry']!, denyEntry],
    ['a cut by error rate', DEFINITIONS['errorRate']!, errorRate],
    ['a penalty', SETTINGS['penalty']!, penalty],
    ['a schedule entry', SETTINGS['schedule']!.items!, schedule],
    ['a window', DEFINITIONS['windowEntry']!, windowEntry],
    ['a calendar window', DEFINITIONS['calendar']!, calendar],
    ['a domain', DEFINITIONS['domain']!, domain],
    ['a descriptor', DEFINITIONS['descriptor']!, descriptor],
    ["a descriptor's limit", DEFINITIONS['descriptorLimit']!, descriptorLimit],
    ['an override', DEFINITIONS['override']!, override],
    ['the terms of an override', DEFINITIONS['overrideTerms']!, overrideTerms],
    ['a membership', DEFINITIONS['membership']!, membership],
    ['a block', DEFINITIONS['block']!, block],
    ['an incident', DEFINITIONS['incident']!, incident],
  ])('knows what the type of %s has, and no more', (_, schema, type) => {
    expect([...known(schema)].sort()).toEqual(Object.keys(type).sort())
  })

  it('describes every property in words and by example, for editors', () => {
    const silent = SCHEMAS.filter(({ path }) => /\/properties\/[^/]+$/.test(path)).filter(({ root, path, schema }) => {
      // Branches that only tell which properties go together do not describe them again.
      if (/\/anyOf\/\d+\/properties\/unlimited$/.test(path)) return false
      const { description, examples } = described(root, schema)
      return description === undefined || examples === undefined
    })
    expect(silent.map(({ path }) => path)).toEqual([])
  })

  it('has only examples that are valid', () => {
    const wrong = SCHEMAS.flatMap(({ root, path, schema }) =>
      (schema.examples ?? []).flatMap((example) => new SchemaCheck(root).problemsOf(example, path)),
    )
    expect(wrong).toEqual([])
    expect(SCHEMAS.flatMap(({ schema }) => schema.examples ?? []).length).toBeGreaterThan(100)
  })

  it('says in words what regular expressions ask for', () => {
    const silent = SCHEMAS.filter(({ schema }) => schema.pattern !== undefined && schema.title === undefined)
    expect(silent.map(({ path }) => path)).toEqual([])
  })

  it('is closed everywhere but in metadata', () => {
    const open = SCHEMAS.filter(({ path, schema }) => {
      // A list of what all rules may have; it checks nothing itself.
      if (path === '#/$defs/settings') return false
      return schema.type === 'object' && schema.properties !== undefined && schema.additionalProperties !== false
    })
    expect(open.map(({ path }) => path)).toEqual([])
    expect(DEFINITIONS['descriptor']!.properties!['metadata']).toMatchObject({ type: 'object' })
  })

  it('takes instants as strings in files only', () => {
    const deny = { rules: [], denyList: [{ name: 'a', match: { services: ['x'] }, expiresAt: '2026-12-31' }] }
    expect(new SchemaCheck(RULE_SET_FILE_SCHEMA).problemsOf(deny)).toEqual([])
    expect(new SchemaCheck(RULE_SET_SCHEMA).problemsOf(deny)).toMatchObject([{ path: '/denyList/0/expiresAt' }])
  })
})
