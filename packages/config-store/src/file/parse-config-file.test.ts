import { readdirSync, readFileSync } from 'node:fs'
import type { RuleSetError, RuleSetProblem } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import { parseConfigFile } from './parse-config-file.ts'

const BAD_FILES = new URL('./bad-files/', import.meta.url)

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

function errorOf(bytes: Uint8Array, name: string): RuleSetError {
  try {
    parseConfigFile(bytes, name)
  } catch (error) {
    return error as RuleSetError
  }
  throw new Error(`${name} has no problem`)
}

/** File, path, line, and a part of what was received and of what was expected. */
const MISTAKES: readonly (readonly [string, string, number, string, string])[] = [
  ['not-yaml.yaml', '', 5, 'not YAML (Flow sequence', 'YAML'],
  ['tab-indent.yaml', '', 3, 'not YAML (Tabs are not allowed as indentation)', 'YAML'],
  ['two-documents.yaml', '', 3, 'a second document', 'one document'],
  ['duplicate-key.yaml', '/rules/0/limit', 6, 'given twice', 'each key once'],
  ['custom-tag.yaml', '/rules/0/limit', 4, '!env', 'without a tag'],
  ['unknown-alias.yaml', '/rules/0/window', 5, '*usual', '&usual before it'],
  ['alias-bomb.yaml', '', 1, 'Excessive alias count', 'aliases that stand for less'],
  ['empty.yaml', '', 1, 'null', 'a rule set such as'],
  ['a-list.yaml', '', 2, 'a list', 'a rule set such as'],
  ['newer-version.yaml', '/version', 1, '2', '1'],
  ['unknown-section.yaml', '/overides', 2, 'unknown', '"overrides"'],
  ['unknown-key.yaml', '/rules/0/windw', 5, 'unknown', '"window"'],
  ['missing-window.yaml', '/rules/0/window', 2, 'missing', 'a duration'],
  ['wrong-type.yaml', '/rules/0/limit', 4, '"ten"', 'a whole number'],
  ['wrong-duration.yaml', '/rules/0/window', 5, '"1 fortnight"', 'a duration'],
  ['unknown-algorithm.yaml', '/rules/0/algorithm', 4, '"leaky-basket"', '"leaky-bucket-meter"'],
  ['duplicate-rule.yaml', '/rules/2', 4, 'as /rules/0', 'one rule for each'],
  ['duplicate-name.yaml', '/rules/1/name', 3, '"orders"', 'a name of its own'],
  ['bad-pattern.yaml', '/rules/0/resource', 2, '"/files/**/raw"', '"/*" at the end'],
  ['bad-dimension.yaml', '/rules/0/dimension', 3, '"tenant+global"', '"global"'],
  ['unknown-time-zone.yaml', '/rules/0/window/timeZone', 8, '"Europe/Atlantis"', 'an IANA name'],
  ['bad-schedule.yaml', '/rules/0/schedule/1/from', 8, '"25:00"', 'a time of day'],
  ['bad-cidr.yaml', '/denyList/0/match/cidrs/1', 7, '"10.0.0.1/8"', '10.0.0.0/8'],
  ['empty-match.yaml', '/exemptions/0/match', 4, 'an object', 'at least one of'],
  ['bad-percent.yaml', '/rules/0/percent', 6, '150', '0 to 100'],
  ['unknown-tier.yaml', '/members/1/tier', 6, '"platinum"', 'premium'],
  ['bad-instant.yaml', '/overrides/0/expiresAt', 7, '"2026-02-30"', 'a day and time that exist'],
  ['two-terms.yaml', '/overrides/0/terms/multiplier', 8, '2', '"limit"'],
  ['inside-anchor.yaml', '/rules/0/window', 6, '"1 minute"', 'a duration'],
]

it('needs rules, unless they are elsewhere', () => {
  const bytes = new TextEncoder().encode('routes: []\n')
  expect(() => parseConfigFile(bytes, 'sluice.yaml')).toThrow('SLUICE_INVALID_RULE_SET')
  const content = parseConfigFile(bytes, 'sluice.yaml', { needsRules: false })
  expect(content).toMatchObject({ ruleSet: { rules: [] }, gateway: { routes: [] } })
  const list = new TextEncoder().encode('- 1\n')
  expect(() => parseConfigFile(list, 'sluice.yaml', { needsRules: false })).toThrow('SLUICE_INVALID_RULE_SET')
})

describe('a file with a mistake', () => {
  it.each(MISTAKES)('%s is rejected at "%s", line %i', (name, path, line, received, expected) => {
    const error = errorOf(readFileSync(new URL(name, BAD_FILES)), name)
    expect(error).toMatchObject({ code: 'SLUICE_INVALID_RULE_SET', message: expect.stringContaining(name) })
    expect(error.problems[0]).toEqual({
      path,
      line,
      received: expect.stringContaining(received),
      expected: expect.stringContaining(expected),
    } satisfies RuleSetProblem)
  })

  it('is in the table, each of them', () => {
    expect(readdirSync(BAD_FILES).sort()).toEqual(MISTAKES.map(([name]) => name).sort())
  })

  it.each([
    ['a comma too many', '{\n  "rules": [\n    {},\n  ]\n}\n', 4, 'not JSON at "]"'],
    ['the end cut off', '{\n  "rules": [\n    {', 3, 'not JSON: it ends too soon'],
    ['YAML in it', 'rules: []\n', 1, 'not JSON at "rules: []"'],
  ])('JSON with %s is rejected, with its line', (_, text, line, received) => {
    expect(errorOf(bytesOf(text), 'a.json').problems).toEqual([{ path: '', line, received, expected: 'JSON' }])
  })

  it('JSON with a wrong value is rejected, with its line', () => {
    const text =
      '{\n\t"rules": [\n\t\t{\n\t\t\t"resource": "/a",\n\t\t\t"dimension": "ip",\n\t\t\t"limit": -1,\n' +
      '\t\t\t"window": "1s"\n\t\t}\n\t]\n}'
    expect(errorOf(bytesOf(text), 'a.json').problems).toMatchObject([{ path: '/rules/0/limit', line: 6 }])
  })

  it('lists all its mistakes, each with its line', () => {
    const text = `
rules:
  - resource: /a
    dimension: user
    limit: ten
    window: 1m
  - resource: '/b*c'
    dimension: user
    limit: 10
    window: soon
tiers:
  - name: gold
    multiplier: 0
denyList:
  - name: bad
    match: { cidrs: [300.0.0.1] }
`
    const { problems } = errorOf(bytesOf(text), 'sluice.yaml')
    expect(problems.map(({ path, line }) => [path, line])).toEqual([
      ['/rules/0/limit', 5],
      ['/rules/1/window', 10],
      ['/rules/1/resource', 7],
      ['/tiers/0/multiplier', 13],
      ['/denyList/0/match/cidrs/0', 16],
    ])
  })

  it('has the line of what an alias stands for', () => {
    const { problems } = errorOf(readFileSync(new URL('inside-anchor.yaml', BAD_FILES)), 'x.yaml')
    expect(problems.map(({ path, line }) => [path, line])).toEqual([
      ['/rules/0/window', 6],
      ['/rules/1/window', 6],
    ])
  })

  it('has the line of what an alias stands for, as a whole too', () => {
    const rule = 'dimension: ip, limit: 1, window: 1s'
    const text = `rules:
  - { resource: /a, ${rule}, schedule: &night [{ from: '22:00', to: '24:99', multiplier: 2 }] }
  - { resource: /b, ${rule}, schedule: *night }
`
    const { problems } = errorOf(bytesOf(text), 'x.yaml')
    expect(problems.map(({ path, line }) => [path, line])).toEqual([
      ['/rules/0/schedule/0/to', 2],
      ['/rules/1/schedule/0/to', 2],
    ])
  })

  it.each(['!!binary aGk=', '!!timestamp 2026-01-01', '!<tag:example.org,2026:x> 1'])('%s is rejected', (value) => {
    const { problems } = errorOf(bytesOf(`rules: []\nincident: ${value}\n`), 'x.yaml')
    expect(problems).toMatchObject([{ path: '/incident', line: 2, expected: 'a value without a tag' }])
  })

  it.each([
    ['not UTF-8', Uint8Array.of(0x72, 0xff, 0xfe), 'invalid UTF-8'],
    ['too large', new Uint8Array(33_554_433), '33554433 bytes long'],
  ])('%s is rejected', (_, bytes, received) => {
    expect(errorOf(bytes, 'sluice.yaml').problems).toMatchObject([{ path: '', received }])
  })

  it('cannot reach beyond itself by the names of its keys', () => {
    expect(errorOf(bytesOf('__proto__: { rules: [] }\n'), 'x.yaml').problems[0]).toMatchObject({ path: '/__proto__' })
    expect(({} as { rules?: unknown }).rules).toBeUndefined()
  })
})

describe('a good file', () => {
  it('is read with everything that may stand in it', () => {
    const text = `# yaml-language-server: $schema=./sluice.schema.json
version: 1
rules:
  - &usual
    resource: /orders/:id
    dimension: user
    limit: 100
    window: 1m
  - <<: *usual
    resource: /baskets
    methods: [POST]
tiers:
  - { name: premium, multiplier: 10 }
exemptions:
  - { name: health, match: { resource: /health } }
denyList:
  - { name: scrapers, match: { cidrs: [192.0.2.0/24] }, expiresAt: 2030-01-01T00:00:00Z }
overrides:
  - { dimension: user, entity: "42", resource: /orders/:id, terms: { limit: 7 }, expiresAt: 2030-06-01 }
  - { dimension: tenant, entity: acme, resource: '*', terms: { multiplier: 2 }, expiresAt: 1900000000000 }
members:
  - { dimension: user, entity: "42", tier: premium }
`
    const usual = { dimension: 'user', limit: 100, window: '1m' }
    expect(parseConfigFile(bytesOf(text), 'sluice.yaml')).toEqual({
      ruleSet: {
        rules: [
          { ...usual, resource: '/orders/:id' },
          { ...usual, resource: '/baskets', methods: ['POST'] },
        ],
        tiers: [{ name: 'premium', multiplier: 10 }],
        exemptions: [{ name: 'health', match: { resource: '/health' } }],
        denyList: [{ name: 'scrapers', match: { cidrs: ['192.0.2.0/24'] }, expiresAt: Date.UTC(2030, 0, 1) }],
      },
      overrides: [
        {
          dimension: 'user',
          entity: '42',
          resource: '/orders/:id',
          terms: { limit: 7 },
          expiresAt: Date.UTC(2030, 5, 1),
        },
        { dimension: 'tenant', entity: 'acme', resource: '*', terms: { multiplier: 2 }, expiresAt: 1_900_000_000_000 },
      ],
      members: [{ dimension: 'user', entity: '42', tier: 'premium' }],
    })
  })

  it.each([
    [
      'JSON with tabs',
      'a.json',
      '{\n\t"rules": [\n\t\t{"resource": "*", "dimension": "ip", "limit": 1, "window": "1s"}\n\t]\n}\n',
    ],
    ['JSON in capitals', 'A.JSON', '{"rules":[{"resource":"*","dimension":"ip","limit":1,"window":"1s"}]}'],
    [
      'YAML with a byte order mark and CRLF',
      'a.yml',
      '\uFEFFrules:\r\n  - {resource: "*", dimension: ip, limit: 1, window: 1s}\r\n',
    ],
  ])('may be %s', (_, name, text) => {
    expect(parseConfigFile(bytesOf(text), name)).toMatchObject({
      ruleSet: { rules: [{ resource: '*', dimension: 'ip', limit: 1, window: '1s' }] },
    })
  })

  it('may use one anchor a thousand times', () => {
    const uses = Array.from({ length: 1000 }, (_, index) => `  - { <<: *usual, resource: /r${index} }`)
    const text = `rules:\n  - &usual { resource: /r, dimension: ip, limit: 1, window: 1s }\n${uses.join('\n')}\n`
    expect(parseConfigFile(bytesOf(text), 'a.yaml').ruleSet.rules).toHaveLength(1001)
  })

  it('may name only cost functions that are there', () => {
    const text = 'rules:\n  - { resource: /r, dimension: ip, limit: 1, window: 1s, cost: { function: tokens } }\n'
    expect(parseConfigFile(bytesOf(text), 'a.yaml', { costFunctions: ['tokens'] }).ruleSet.rules).toHaveLength(1)
    expect(() => parseConfigFile(bytesOf(text), 'a.yaml', { costFunctions: ['bytes'] })).toThrow('/rules/0/cost')
  })
})
