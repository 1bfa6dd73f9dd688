import { readdirSync, readFileSync } from 'node:fs'
import type { DescriptorEntry } from '@sluice/core/internal'
import { DescriptorTree } from '@sluice/core/internal'
import type { DescriptorDomain, RuleSetError } from '@sluice/core/policy'
import { checkRuleSet } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import { type EnvoyFile, type EnvoyImportOptions, importEnvoyYaml } from './envoy-import.ts'

const FOLDER = new URL('envoy-files/', import.meta.url)

function fileOf(kind: 'good' | 'bad', name: string): EnvoyFile {
  return { name, text: readFileSync(new URL(`${kind}/${name}.yaml`, FOLDER), 'utf8') }
}

function namesOf(kind: 'good' | 'bad'): string[] {
  return readdirSync(new URL(kind, FOLDER)).map((name) => name.replace(/\.yaml$/, ''))
}

function problemsOf(files: readonly EnvoyFile[], options?: EnvoyImportOptions): RuleSetError['problems'] {
  try {
    importEnvoyYaml(files, options)
  } catch (error) {
    expect(error).toMatchObject({ code: 'SLUICE_INVALID_RULE_SET' })
    return (error as RuleSetError).problems
  }
  return []
}

const imported = (name: string): readonly DescriptorDomain[] => importEnvoyYaml([fileOf('good', name)]).domains

const ALL_OF_A_DESCRIPTOR =
  'key, value, rate_limit, descriptors, shadow_mode, quota_mode, detailed_metric, value_to_metric, ' +
  'share_threshold, metadata'
const ALL_OF_A_LIMIT = 'unit, requests_per_unit, unlimited, name, replaces'
const UNITS = 'one of second, minute, hour, day, week, month, year'
const UINT32 = 'a whole number from 0 to 4294967295'
const DATA = 'a mapping of strings, numbers, true, false, lists and mappings'
const LIMIT = '/descriptors/0/rate_limit'

/** File, pointer, line, received, expected. */
const MISTAKES: readonly [string, string, number, string, string][] = [
  ['alias-of-nothing', LIMIT, 4, '*standard, which stands for nothing', '&standard before it'],
  ['bare-key-twice', '/descriptors/1', 4, 'a second "user" without a value', 'each key and value once at a level'],
  ['descriptor-is-a-text', '/descriptors/0', 3, '"user"', `a mapping of ${ALL_OF_A_DESCRIPTOR}`],
  ['descriptors-are-a-mapping', '/descriptors', 2, 'a mapping', 'a list of descriptors'],
  ['domain-is-a-list', '/domain', 1, 'a list', 'the name of the domain'],
  ['empty-domain', '/domain', 1, '""', 'the name of the domain'],
  ['empty-file', '', 1, 'missing', 'a mapping of domain, descriptors'],
  ['empty-key', '/descriptors/0/key', 3, '""', 'the key of an entry'],
  ['key-given-twice', `${LIMIT}/requests_per_unit`, 7, 'given twice', 'each key once'],
  ['key-is-a-mapping', '/descriptors/0/key', 3, 'a mapping', 'the key of an entry'],
  ['limit-is-a-number', LIMIT, 4, '10', `a mapping of ${ALL_OF_A_LIMIT}`],
  ['list-at-the-top', '', 1, 'a list', 'a mapping of domain, descriptors'],
  ['list-that-contains-itself', '/descriptors/0/descriptors', 4, 'a list that contains itself', 'a list that ends'],
  ['metadata-is-a-list', '/descriptors/0/metadata', 4, 'a list', DATA],
  ['metadata-is-not-a-number', '/descriptors/0/metadata', 4, 'not data that ends, or not a number', DATA],
  ['no-domain', '/domain', 1, 'missing', 'the name of the domain'],
  ['no-key', '/descriptors/0/key', 3, 'missing', 'the key of an entry'],
  ['no-requests', `${LIMIT}/requests_per_unit`, 4, 'missing', UINT32],
  ['no-unit', `${LIMIT}/unit`, 4, 'missing', UNITS],
  ['replaces-a-list-of-texts', `${LIMIT}/replaces/0`, 7, '"orders"', 'a mapping of name'],
  ['replaces-is-a-text', `${LIMIT}/replaces`, 7, '"orders"', 'a list of { name }'],
  ['replaces-itself', `${LIMIT}/replaces/1/name`, 10, 'the name of this limit', 'the name of another limit'],
  ['replaces-nothing', `${LIMIT}/replaces/0/name`, 8, '""', 'the name of another limit'],
  ['requests-above-32-bits', `${LIMIT}/requests_per_unit`, 6, '4294967296', UINT32],
  ['requests-are-a-fraction', `${LIMIT}/requests_per_unit`, 6, '1.5', UINT32],
  ['requests-below-0', `${LIMIT}/requests_per_unit`, 6, '-1', UINT32],
  ['requests-in-octal', `${LIMIT}/requests_per_unit`, 6, '010', UINT32],
  ['requests-in-quotes', `${LIMIT}/requests_per_unit`, 6, '"10"', UINT32],
  [
    'shadow-mode-in-the-limit',
    `${LIMIT}/shadow_mode`,
    7,
    'not known here',
    `only ${ALL_OF_A_LIMIT}; it belongs to the descriptor`,
  ],
  ['shadow-mode-is-a-text', '/descriptors/0/shadow_mode', 4, '"yes"', 'true or false'],
  [
    'share-threshold-without-asterisk',
    '/descriptors/0/share_threshold',
    5,
    'beside a value without *',
    'a value with *, whose matches share a counter',
  ],
  [
    'share-threshold-without-value',
    '/descriptors/0/share_threshold',
    4,
    'beside a value without *',
    'a value with *, whose matches share a counter',
  ],
  ['syntax', '', 5, 'not YAML (Flow map in block collection must be sufficiently indented and end with a })', 'YAML'],
  ['tag', '/descriptors/0/key', 3, 'marked by a tag (Unresolved tag: !secret)', 'a value without a tag'],
  ['too-deep', `${'/descriptors/0'.repeat(28)}/descriptors`, 58, 'nested too deep', 'at most 28 levels'],
  ['two-documents', '', 3, 'followed by a second document', 'one document in a file'],
  [
    'unit-beside-the-limit',
    '/descriptors/0/unit',
    4,
    'not known here',
    `only ${ALL_OF_A_DESCRIPTOR}; it belongs to rate_limit`,
  ],
  ['unknown-key-at-the-top', '/version', 2, 'not known here', 'only domain, descriptors'],
  ['unknown-key-of-a-descriptor', '/descriptors/0/values', 4, 'not known here', `only ${ALL_OF_A_DESCRIPTOR}`],
  ['unknown-key-of-a-limit', `${LIMIT}/burst`, 7, 'not known here', `only ${ALL_OF_A_LIMIT}`],
  ['unknown-key-of-replaces', `${LIMIT}/replaces/0/when`, 9, 'not known here', 'only name'],
  ['unknown-unit', `${LIMIT}/unit`, 5, '"fortnight"', UNITS],
  ['unlimited-is-a-number', `${LIMIT}/unlimited`, 5, '1', 'true or false'],
  ['unlimited-with-bad-requests', `${LIMIT}/requests_per_unit`, 6, '-1', UINT32],
  ['unlimited-with-unit', `${LIMIT}/unit`, 6, 'beside unlimited', 'one of them'],
  ['value-is-a-fraction', '/descriptors/0/value', 4, '1.10', 'a string; put it in quotes'],
  ['value-is-a-list', '/descriptors/0/value', 4, 'a list', 'a string'],
  ['value-twice', '/descriptors/2', 6, 'a second "user" with "u1"', 'each key and value once at a level'],
  [
    'value-twice-further-down',
    '/descriptors/0/descriptors/1',
    7,
    'a second "user" with "u*"',
    'each key and value once at a level',
  ],
]

describe('a file with one mistake', () => {
  it.each(MISTAKES)('%s', (name, pointer, line, received, expected) => {
    expect(problemsOf([fileOf('bad', name)])).toEqual([{ path: `${name}#${pointer}`, line, received, expected }])
  })

  it('has its line in the table', () => {
    expect(namesOf('bad').sort()).toEqual(MISTAKES.map(([name]) => name).sort())
  })
})

describe('several files', () => {
  const one = { name: 'one.yaml', text: 'domain: shop\ndescriptors:\n  - key: user\n' }
  const other = { name: 'other.yaml', text: '# more\ndomain: shop\ndescriptors:\n  - key: ip\n' }

  it('of one domain are a mistake', () => {
    expect(problemsOf([one, other])).toEqual([
      {
        path: 'other.yaml#/domain',
        line: 2,
        received: '"shop" once more',
        expected: 'each domain in one file only, or mergeDomains',
      },
    ])
  })

  it('of one domain are joined on request, in the order of the files', () => {
    const bank = { name: 'bank.yaml', text: 'domain: bank\n' }
    expect(importEnvoyYaml([one, bank, other], { mergeDomains: true }).domains).toEqual([
      { domain: 'shop', descriptors: [{ key: 'user' }, { key: 'ip' }] },
      { domain: 'bank', descriptors: [] },
    ])
  })

  it('that are joined must not have the same key and value either', () => {
    const [problem, ...more] = problemsOf([one, { ...one, name: 'again.yaml' }], { mergeDomains: true })
    expect(problem).toMatchObject({ path: 'again.yaml#/descriptors/0', line: 3 })
    expect(more).toEqual([])
  })

  it('are read to the end: every mistake of all of them is listed, in their order', () => {
    const bad = {
      name: 'bad.yaml',
      text: 'domain:\ndescriptors:\n  - value: 1.5\n    rate_limit: { unit: ever, requests_per_unit: x, burst: 1 }\n',
    }
    const problems = problemsOf([bad, one, { name: 'worse.yaml', text: 'domain: [' }])
    expect(problems.map(({ path, line }) => `${path} ${line}`)).toEqual([
      'bad.yaml#/domain 1',
      'bad.yaml#/descriptors/0/key 3',
      'bad.yaml#/descriptors/0/value 3',
      'bad.yaml#/descriptors/0/rate_limit/burst 4',
      'bad.yaml#/descriptors/0/rate_limit/unit 4',
      'bad.yaml#/descriptors/0/rate_limit/requests_per_unit 4',
      expect.stringMatching(/^worse\.yaml#.* 1$/),
    ])
  })

  it('have JSON pointers to their mistakes, whatever the keys are', () => {
    const [problem] = problemsOf([{ name: 'odd', text: 'domain: d\n"a/b~c": 1\n' }])
    expect(problem).toMatchObject({ path: 'odd#/a~1b~0c', line: 2 })
  })

  it('name themselves in the message', () => {
    expect(() => importEnvoyYaml([one, other])).toThrow(
      /a set of 2 files has a problem: other\.yaml#\/domain \(line 2\)/,
    )
  })

  it('may be none', () => {
    expect(importEnvoyYaml([])).toEqual({ domains: [] })
  })
})

describe('a file that is meant to do harm', () => {
  it('cannot fill the memory with aliases of aliases', () => {
    const levels = Array.from({ length: 30 }, (_, index) => {
      const list = `[{ key: l, descriptors: *x${index} }, { key: m, descriptors: *x${index} }]`
      return `  - { key: k${index}, descriptors: &x${index + 1} ${list} }\n`
    })
    const text = `domain: d\ndescriptors:\n  - { key: k, descriptors: &x0 [{ key: l }] }\n${levels.join('')}`
    expect(problemsOf([{ name: 'aliases', text }])).toMatchObject([{ expected: 'aliases that stand for less' }])
  })

  it('is rejected when it is nested without end, also in free data', () => {
    const deep = `domain: d\ndescriptors: ${'[{ key: a, descriptors: '.repeat(20_000)}`
    expect(problemsOf([{ name: 'deep', text: deep }]).length).toBeGreaterThan(0)
    const itself = 'domain: d\ndescriptors: [{ key: a, metadata: &m { more: *m } }]'
    expect(problemsOf([{ name: 'itself', text: itself }])).toMatchObject([{ path: 'itself#/descriptors/0/metadata' }])
  })
})

describe('a file without mistakes', () => {
  it.each(namesOf('good'))('is a part of a rule set that passes every check: %s', (name) => {
    const domains = imported(name)
    expect(checkRuleSet({ rules: [], domains })).toEqual([])
    expect(() => new DescriptorTree(domains)).not.toThrow()
  })

  it('passes them too when it is as deep as it may be', () => {
    const limit = 'rate_limit: { unit: day, requests_per_unit: 1, replaces: [{ name: other }] }'
    const text = `domain: d\ndescriptors: ${`[{ key: a, ${limit}, descriptors: `.repeat(28)}[]${'}]'.repeat(28)}\n`
    const { domains } = importEnvoyYaml([{ name: 'deep', text }])
    expect(checkRuleSet({ rules: [], domains })).toEqual([])
    const entries = Array.from({ length: 28 }, () => ({ key: 'a', value: '1' }))
    expect(new DescriptorTree(domains).lookup('d', entries).kind).toBe('limit')
  })

  it('keeps everything it says', () => {
    expect(imported('every-key')).toEqual([
      {
        domain: 'everything',
        descriptors: [
          {
            key: 'file',
            value: 'files/*',
            limit: { unit: 'minute', requestsPerUnit: 100, name: 'files', replaces: ['all-files', 'other-files'] },
            shareThreshold: true,
            detailedMetric: true,
            valueToMetric: true,
            metadata: { pool: 'blue', weight: 3, ratio: 0.5, drained: false, zones: ['a', 'b'], owner: null },
          },
          { key: 'backend', value: 'one', limit: { unit: 'week', requestsPerUnit: 4_294_967_295 }, quota: true },
          { key: 'status', value: '404', limit: { unit: 'month', requestsPerUnit: 0 } },
          { key: 'retried', value: 'true', limit: { unit: 'year', requestsPerUnit: 1 } },
          { key: 'code', value: '007' },
          { key: 'free', limit: { unlimited: true, name: 'free' } },
          { key: 'hour', limit: { unit: 'hour', requestsPerUnit: 1 } },
        ],
      },
    ])
  })

  it('may use anchors, aliases and merges', () => {
    const users = [{ key: 'user', limit: { unit: 'minute', requestsPerUnit: 10 } }]
    expect(imported('anchors')[0]?.descriptors).toEqual([
      { key: 'read', limit: { unit: 'minute', requestsPerUnit: 10 }, descriptors: users },
      { key: 'write', limit: { unit: 'minute', requestsPerUnit: 5 }, descriptors: users },
    ])
  })

  it('may have a domain only', () => {
    expect(imported('empty-domain-tree')).toEqual([{ domain: 'nothing-yet', descriptors: [] }])
  })
})

/** `a=1 b=2` as entries. */
function entriesOf(text: string): DescriptorEntry[] {
  return text.split(' ').map((part) => {
    const [key = '', value = ''] = part.split('=')
    return { key, value }
  })
}

describe('requests to imported trees', () => {
  it.each<[string, string, string, string]>([
    ['shop', 'shop', 'route=/orders/1 api_key=k1', '300 per minute'],
    ['shop', 'shop', 'route=/orders/ api_key=k1', '300 per minute'],
    ['shop', 'shop', 'route=/orders/1 api_key=internal', 'unlimited'],
    ['shop', 'shop', 'route=/orders/1', 'none'],
    ['shop', 'shop', 'route=/orders/1 api_key=k1 user=u1', 'none'],
    ['shop', 'shop', 'route=/carts/1 api_key=k1', 'none'],
    ['shop', 'shop', 'api_key=k1', 'none'],
    ['shop', 'shop', 'plan=trial', '1000 per day'],
    ['shop', 'shop', 'plan=paid', 'none'],
    ['shop', 'bank', 'plan=trial', 'unknown-domain'],
    ['order-of-matches', 'matches', 'host=api.example.com', '4 per second'],
    ['order-of-matches', 'matches', 'host=www.example.com', '2 per second'],
    ['order-of-matches', 'matches', 'host=api.example.org', '3 per second'],
    ['order-of-matches', 'matches', 'host=api.other.example.com', '2 per second'],
    ['order-of-matches', 'matches', 'host=example.com', '1 per second'],
    ['order-of-matches', 'matches', 'host=static.example.com', 'none'],
    ['order-of-matches', 'matches', 'host=static.example.com path=/img/cats/large', '5 per second'],
    ['order-of-matches', 'matches', 'host=static.example.com path=/img/large', 'none'],
    ['order-of-matches', 'matches', 'host=www.example.com path=/img/cats/large', 'none'],
    ['every-key', 'everything', 'file=files/a.pdf', '100 per minute'],
    ['every-key', 'everything', 'status=404', '0 per month'],
    ['every-key', 'everything', 'code=007', 'none'],
    ['every-key', 'everything', 'free=', 'unlimited'],
  ])('%s: %s, %s finds %s', (name, domain, text, expected) => {
    const { kind, rule } = new DescriptorTree(imported(name)).lookup(domain, entriesOf(text))
    const { unit, requestsPerUnit } = rule?.current ?? {}
    expect(kind === 'limit' ? `${requestsPerUnit} per ${unit}` : kind).toBe(expected)
  })
})
