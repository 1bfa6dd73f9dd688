import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Limit } from '../../rule/limit.ts'
import { joinKey, LONGEST_KEY } from '../../store/key.ts'
import type {
  DescriptorDomain,
  DescriptorLimit,
  DescriptorNode,
  DescriptorUnit,
} from '../rule-set/descriptor-domain.ts'
import type { DescriptorEntry } from './descriptor-rule.ts'
import { DescriptorTree } from './descriptor-tree.ts'

const perMinute = (requestsPerUnit: number, name?: string): DescriptorLimit => ({
  unit: 'minute',
  requestsPerUnit,
  ...(name === undefined ? {} : { name }),
})

/** `a=1 b=2` as entries; `a=` has an empty value. */
function entriesOf(text: string): DescriptorEntry[] {
  return text === '' ? [] : text.split(' ').map((part) => entryOf(part))
}

function entryOf(part: string): DescriptorEntry {
  const [key = '', value = ''] = part.split('=')
  return { key, value }
}

function treeOf(...descriptors: DescriptorNode[]): DescriptorTree {
  return new DescriptorTree([{ domain: 'shop', descriptors }])
}

/** What was found: the number of the limit, or the kind. */
function found(tree: DescriptorTree, text: string): number | string {
  const { kind, rule } = tree.lookup('shop', entriesOf(text))
  return rule?.current?.requestsPerUnit ?? kind
}

describe('the lookup of a descriptor', () => {
  const tree = treeOf(
    { key: 'route', limit: perMinute(1) },
    { key: 'route', value: '/a*', limit: perMinute(2), descriptors: [{ key: 'user', limit: perMinute(3) }] },
    { key: 'route', value: '/ab*', limit: perMinute(4) },
    { key: 'route', value: '/abc', descriptors: [{ key: 'user', value: 'u1', limit: perMinute(5) }] },
    { key: 'plan', value: 'free', limit: { unlimited: true } },
    { key: 'deep', descriptors: [{ key: 'deeper', descriptors: [{ key: 'deepest', limit: perMinute(6) }] }] },
    { key: 'empty', value: '', limit: perMinute(7) },
    { key: 'star', value: '*', limit: perMinute(8) },
    { key: 'star', limit: perMinute(9) },
  )

  it.each([
    ['a bare key takes any value', 'route=/x', 1],
    ['a pattern comes before the bare key', 'route=/axe', 2],
    ['the first pattern of the file counts, not the longest', 'route=/abx', 2],
    ['the very value comes before any pattern', 'route=/abc user=u1', 5],
    ['a value that is the text of a pattern finds that one', 'route=/ab*', 4],
    ['there is no way back from the node that was taken', 'route=/abc', 'none'],
    ['nor further down', 'route=/abc user=u2', 'none'],
    ['a level below a pattern', 'route=/axe user=u2', 3],
    ['more entries than the rule is deep', 'route=/x user=u1', 'none'],
    ['fewer entries than the rule is deep', 'deep=1 deeper=2', 'none'],
    ['as many entries as the rule is deep', 'deep=1 deeper=2 deepest=3', 6],
    ['another order of entries', 'deeper=2 deep=1 deepest=3', 'none'],
    ['an unknown key', 'other=1', 'none'],
    ['an unlimited one', 'plan=free', 'unlimited'],
    ['a value that is not there, without a bare key', 'plan=paid', 'none'],
    ['an empty value in the tree stands for any', 'empty=x', 7],
    ['an empty value of the request meets the bare key', 'route=', 1],
    ['an empty value of the request meets a lone asterisk', 'star=', 8],
    ['keys differ by case', 'Route=/x', 'none'],
    ['no entries', '', 'none'],
  ])('%s', (_rule, text, expected) => {
    expect(found(tree, text)).toBe(expected)
  })

  it('has its own answer for an unknown domain', () => {
    expect(tree.lookup('other', entriesOf('route=/x'))).toMatchObject({ kind: 'unknown-domain', rule: undefined })
    expect(tree.matchRequestLimit('other', [], { unit: 'hour', requestsPerUnit: 5 }).kind).toBe('unknown-domain')
  })

  it('takes key and value as two things, whatever characters they have', () => {
    const joined = treeOf(
      { key: 'a', value: 'b_c', limit: perMinute(1) },
      { key: 'a_b', value: 'c', limit: perMinute(2) },
    )
    expect(found(joined, 'a=b_c')).toBe(1)
    expect(found(joined, 'a_b=c')).toBe(2)
    expect(found(treeOf({ key: 'a_b', limit: perMinute(1) }), 'a=b')).toBe('none')
    expect(found(treeOf({ key: 'a', limit: perMinute(1) }), '__proto__=x')).toBe('none')
  })

  it('hands back what the node says', () => {
    const { rule } = treeOf({
      key: 'plan',
      shadow: true,
      quota: true,
      metadata: { backend: 'b' },
      limit: { unit: 'week', requestsPerUnit: 3, name: 'trial', replaces: ['orders'] },
    }).lookup('shop', entriesOf('plan=x'))
    expect(rule).toMatchObject({ shadow: true, quota: true, name: 'trial', replaces: ['orders'] })
    expect(rule).toMatchObject({ metadata: { backend: 'b' } })
    expect(rule?.current).toEqual({ unit: 'week', requestsPerUnit: 3, name: 'trial' })
  })
})

describe('the counter of a descriptor', () => {
  it.each<[string, DescriptorNode, string, string[]]>([
    ['has domain, keys and values', { key: 'a', limit: perMinute(1) }, 'a=1', ['shop', 'a', '1']],
    ['is one for a named value', { key: 'a', value: '1', limit: perMinute(1) }, 'a=1', ['shop', 'a', '1']],
    [
      'is its own for each match of a pattern',
      { key: 'a', value: 'x*', limit: perMinute(1) },
      'a=xy',
      ['shop', 'a', 'xy'],
    ],
    [
      'is shared by all matches where the pattern says so',
      { key: 'a', value: 'x*', shareThreshold: true, limit: perMinute(1) },
      'a=xy',
      ['shop', 'a', 'x*'],
    ],
    [
      'is shared below a pattern that says so',
      { key: 'a', value: 'x*', shareThreshold: true, descriptors: [{ key: 'b', limit: perMinute(1) }] },
      'a=xy b=2',
      ['shop', 'a', 'x*', 'b', '2'],
    ],
    [
      'keeps what is fixed between what is not',
      { key: 'a', descriptors: [{ key: 'b', value: 'f', descriptors: [{ key: 'c', limit: perMinute(1) }] }] },
      'a=1 b=f c=3',
      ['shop', 'a', '1', 'b', 'f', 'c', '3'],
    ],
  ])('%s', (_rule, node, text, parts) => {
    expect(treeOf(node).lookup('shop', entriesOf(text)).key).toBe(joinKey(parts))
  })

  it('is the same one for a limit that came with the request, and for every number per unit', () => {
    const tree = treeOf({ key: 'a', limit: perMinute(10) })
    const match = tree.lookup('shop', entriesOf('a=1'))
    const own = tree.matchRequestLimit('shop', entriesOf('a=1'), { unit: 'minute', requestsPerUnit: 50 })
    expect([own.key, own.rule?.limit?.id]).toEqual([match.key, match.rule?.limit?.id])
    const hourly = tree.matchRequestLimit('shop', entriesOf('a=1'), { unit: 'hour', requestsPerUnit: 50 })
    expect(hourly.rule?.limit?.id).not.toBe(own.rule?.limit?.id)
  })

  it('is never one for two callers (property)', () => {
    const tree = treeOf({ key: '1:a', limit: perMinute(1), descriptors: [{ key: 'b', limit: perMinute(1) }] })
    const value = fc.string({ unit: fc.constantFrom('1', ':', 'a', 'b', '_'), maxLength: 5 })
    const lists = fc.array(value, { minLength: 1, maxLength: 2 })
    const keyOf = ([first = '', second]: string[]): string => {
      const last = second === undefined ? [] : [{ key: 'b', value: second }]
      return tree.lookup('shop', [{ key: '1:a', value: first }, ...last]).key
    }
    fc.assert(
      fc.property(lists, lists, (one, other) => {
        expect(keyOf(one) === keyOf(other)).toBe(JSON.stringify(one) === JSON.stringify(other))
      }),
      { numRuns: 5000 },
    )
  })

  it('has a key that stores take, and its own, however long the value is', () => {
    const tree = treeOf({ key: 'a', limit: perMinute(1) })
    const keyOf = (value: string): string => tree.lookup('shop', [{ key: 'a', value }]).key
    const long = 'x'.repeat(100_000)
    const all = [keyOf(long), keyOf(`${long}y`), keyOf(`y${long}`), keyOf('x'.repeat(LONGEST_KEY))]
    for (const key of all) expect(key.length).toBeLessThanOrEqual(LONGEST_KEY)
    expect(new Set(all).size).toBe(4)
    const own = tree.matchRequestLimit('shop', [{ key: 'a', value: long }], { unit: 'minute', requestsPerUnit: 1 })
    expect(own.key).toBe(all[0])
    const named = treeOf({ key: 'a', value: long, limit: perMinute(1) })
    expect(named.lookup('shop', [{ key: 'a', value: long }]).key).toBe(all[0])
  })

  it.each<[DescriptorUnit, number]>([
    ['second', 1],
    ['minute', 60],
    ['hour', 3600],
    ['day', 86_400],
    ['week', 604_800],
    ['month', 2_592_000],
    ['year', 31_536_000],
  ])('of one %s has windows of %d seconds', (unit, seconds) => {
    const tree = treeOf({ key: 'a', limit: { unit, requestsPerUnit: 7 } })
    const limit = tree.lookup('shop', entriesOf('a=1')).rule?.limit
    expect(limit).toMatchObject({ algorithm: 'fixed-window', window: seconds * 1_000_000, limit: 7 })
  })

  it('has a limit in every domain, whatever its name', () => {
    const names = ['shop', 'Käse & Brot', 'x'.repeat(500), `${'x'.repeat(499)}y`, '-', '\0', ' ']
    const domains = names.map((domain) => ({ domain, descriptors: [{ key: 'a', limit: perMinute(1) }] }))
    const tree = new DescriptorTree(domains)
    const ids = names.map((name) => tree.lookup(name, entriesOf('a=1')).rule?.limit?.id)
    expect(new Set(ids).size).toBe(names.length)
  })
})

describe('the name of the metric', () => {
  const bare: DescriptorNode = { key: 'user', limit: perMinute(1) }
  it.each<[string, DescriptorNode, string]>([
    ['has no value of a bare key', bare, 'shop.user'],
    ['has it where the node says so', { ...bare, valueToMetric: true }, 'shop.user_u1'],
    ['has it in detail', { ...bare, detailedMetric: true }, 'shop.user_u1'],
    ['has the value of the tree', { ...bare, value: 'u1' }, 'shop.user_u1'],
    ['has the pattern', { ...bare, value: 'u*' }, 'shop.user_u*'],
    [
      'has what a pattern matched, where the node says so',
      { ...bare, value: 'u*', valueToMetric: true },
      'shop.user_u1',
    ],
    [
      'has the pattern of a shared counter in any case',
      { ...bare, value: 'u*', shareThreshold: true, valueToMetric: true, detailedMetric: true },
      'shop.user_u*',
    ],
  ])('%s', (_rule, node, expected) => {
    const entries = entriesOf('user=u1')
    expect(treeOf(node).lookup('shop', entries).rule?.metricName(entries)).toBe(expected)
  })

  it('goes through all levels', () => {
    const tree = treeOf({ key: 'route', valueToMetric: true, descriptors: [{ key: 'method', descriptors: [bare] }] })
    const entries = entriesOf('route=/a method=GET user=u1')
    expect(tree.lookup('shop', entries).rule?.metricName(entries)).toBe('shop.route_/a.method.user')
  })

  it('of a limit that came with the request has all entries', () => {
    const entries = entriesOf('route=/a user=')
    const { rule } = treeOf(bare).matchRequestLimit('shop', entries, { unit: 'day', requestsPerUnit: 1 })
    expect(rule?.metricName(entries)).toBe('shop.route_/a.user')
  })
})

describe('a tree that cannot be used', () => {
  it.each<[string, DescriptorDomain[], string]>([
    ['two domains of one name', [domainOf(), domainOf()], '/domains/1'],
    [
      'two nodes of one key and value',
      [domainOf({ key: 'a', value: 'x' }, { key: 'a' }, { key: 'a', value: 'x' })],
      '/domains/0/descriptors/2',
    ],
    ['two bare nodes of one key', [domainOf({ key: 'a' }, { key: 'a', value: '' })], '/domains/0/descriptors/1'],
    [
      'a limit without a unit, further down',
      [domainOf({ key: 'a', descriptors: [{ key: 'b', limit: { requestsPerUnit: 1 } }] })],
      '/domains/0/descriptors/0/descriptors/0/limit',
    ],
  ])('%s', (_mistake, domains, path) => {
    expect(() => new DescriptorTree(domains)).toThrow(
      expect.objectContaining({ code: 'SLUICE_INVALID_RULE_SET', problems: [expect.objectContaining({ path })] }),
    )
  })

  it.each([
    { unit: 'fortnight' as DescriptorUnit, requestsPerUnit: 1 },
    { unit: 'minute' as const, requestsPerUnit: -1 },
    { unit: 'minute' as const, requestsPerUnit: 1.5 },
    { unit: 'minute' as const, requestsPerUnit: 4_294_967_296 },
  ])('%j, also with a request', (limit) => {
    const invalid = expect.objectContaining({ code: 'SLUICE_INVALID_OPTION' })
    expect(() => treeOf({ key: 'a', limit })).toThrow(invalid)
    expect(() => treeOf().matchRequestLimit('shop', entriesOf('a=1'), limit)).toThrow(invalid)
  })

  function domainOf(...descriptors: DescriptorNode[]): DescriptorDomain {
    return { domain: 'shop', descriptors }
  }
})

describe('limits that come with requests', () => {
  it('are compiled once, and kept in a bounded number', () => {
    const tree = treeOf()
    const limitOf = (requestsPerUnit: number): Limit | undefined =>
      tree.matchRequestLimit('shop', entriesOf('a=1'), { unit: 'hour', requestsPerUnit }).rule?.limit
    const first = limitOf(0)
    expect(limitOf(0)).toBe(first)
    for (let number = 0; number < 5000; number++) expect(limitOf(number)?.limit).toBe(number)
    expect(limitOf(4999)).toBe(limitOf(4999))
    expect(limitOf(0)).not.toBe(first)
  })
})

// The lookup once more, word by word as it is documented: no index, no compiled keys.

function naiveLookup(
  domains: readonly DescriptorDomain[],
  domain: string,
  entries: readonly DescriptorEntry[],
): unknown {
  const tree = domains.find((each) => each.domain === domain)
  if (tree === undefined) return { kind: 'unknown-domain' }
  let nodes = tree.descriptors
  const parts = [domain]
  for (const [index, entry] of entries.entries()) {
    const ofKey = nodes.filter(({ key }) => key === entry.key)
    const exact = ofKey.find(({ value }) => value === entry.value && value !== '')
    const wild = ofKey.find(({ value }) => value?.includes('*') === true && isOfPattern(value, entry.value))
    const bare = ofKey.find(({ value }) => value === undefined || value === '')
    const node = exact ?? wild ?? bare
    if (node === undefined) return { kind: 'none' }
    parts.push(
      entry.key,
      exact === undefined && node === wild && node.shareThreshold === true ? node.value! : entry.value,
    )
    if (index === entries.length - 1) return naiveAnswer(node.limit, parts)
    nodes = node.descriptors ?? []
  }
  return { kind: 'none' }
}

function naiveAnswer(limit: DescriptorLimit | undefined, parts: readonly string[]): unknown {
  if (limit === undefined) return { kind: 'none' }
  if (limit.unlimited === true) return { kind: 'unlimited' }
  return { kind: 'limit', requestsPerUnit: limit.requestsPerUnit, unit: limit.unit, key: joinKey(parts) }
}

function isOfPattern(pattern: string, value: string): boolean {
  const literals = pattern.split('*').map((text) => text.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${literals.join('[^]*')}$`).test(value)
}

const KEYS = ['a', 'a_b', '__proto__']
const VALUES = ['', 'x', 'xy', 'y', 'x_y', 'x*', '*', '*y', 'x*y', '*x*', 'constructor']

function limits(): fc.Arbitrary<DescriptorLimit> {
  return fc.oneof(
    fc.record({ unit: fc.constantFrom<DescriptorUnit>('second', 'day'), requestsPerUnit: fc.nat(9) }),
    fc.constant({ unlimited: true }),
  )
}

function levels(depth: number): fc.Arbitrary<DescriptorNode[]> {
  const node = fc.record(
    {
      key: fc.constantFrom(...KEYS),
      value: fc.constantFrom(...VALUES),
      limit: limits(),
      shareThreshold: fc.boolean(),
      ...(depth === 0 ? {} : { descriptors: levels(depth - 1) }),
    },
    { requiredKeys: depth === 0 ? ['key'] : ['key', 'descriptors'] },
  )
  const nodes = fc.uniqueArray(node, {
    selector: ({ key, value = '' }) => `${key}=${value}`,
    minLength: depth === 2 ? 0 : 1,
    maxLength: 8,
    size: 'max',
    // Levels further down are to be as full as those above.
    depthIdentifier: `level ${depth}`,
  })
  // Only a pattern can share a counter.
  return nodes.map((list) =>
    list.map((each) => ({
      ...each,
      shareThreshold: each.shareThreshold === true && each.value?.includes('*') === true,
    })),
  )
}

/** Where a request goes at one level: along a node of the tree, or astray. */
interface Step {
  readonly pick: number
  /** What stands for each asterisk of the node's value. */
  readonly fill: string
  readonly stray: DescriptorEntry | undefined
}

function steps(): fc.Arbitrary<Step[]> {
  const entry = fc.record({ key: fc.constantFrom(...KEYS), value: fc.constantFrom(...VALUES) })
  const step = fc.record({
    pick: fc.nat(20),
    fill: fc.constantFrom('', 'x', 'y', '*'),
    stray: fc.option(entry, { nil: undefined, freq: 5 }),
  })
  return fc.array(step, { maxLength: 4, size: 'max' })
}

/** The entries of a request that takes these steps down a tree. */
function walk(nodes: readonly DescriptorNode[], [step, ...rest]: readonly Step[]): DescriptorEntry[] {
  if (step === undefined) return []
  const node = nodes[step.pick % Math.max(1, nodes.length)]
  const { key, value = '' } = step.stray ?? node ?? { key: 'a' }
  return [
    { key, value: value === '' ? step.fill : value.replaceAll('*', step.fill) },
    ...walk(node?.descriptors ?? [], rest),
  ]
}

describe('any tree and any request', () => {
  it('find what the documented lookup finds (property)', () => {
    const trees = fc.uniqueArray(fc.record({ domain: fc.constantFrom('d', 'e'), descriptors: levels(2) }), {
      selector: ({ domain }) => domain,
      minLength: 1,
      maxLength: 2,
    })
    const requests = fc.array(fc.tuple(fc.constantFrom('d', 'e', '__proto__'), steps()), {
      minLength: 1,
      maxLength: 40,
      size: 'max',
    })
    const kinds = new Map<string, number>()
    fc.assert(
      fc.property(trees, requests, (domains, all) => {
        const tree = new DescriptorTree(domains)
        for (const [domain, path] of all) {
          const entries = walk(domains.find((each) => each.domain === domain)?.descriptors ?? [], path)
          const { kind, rule, key } = tree.lookup(domain, entries)
          const { unit, requestsPerUnit } = rule?.current ?? {}
          expect(kind === 'limit' ? { kind, unit, requestsPerUnit, key } : { kind }).toEqual(
            naiveLookup(domains, domain, entries),
          )
          const reached = kind === 'limit' ? `limit at depth ${entries.length}` : kind
          kinds.set(reached, (kinds.get(reached) ?? 0) + 1)
        }
      }),
      { numRuns: 1000 },
    )
    // The cases are worth something only while they reach every answer.
    const answers = ['unknown-domain', 'none', 'unlimited', ...[1, 2, 3].map((depth) => `limit at depth ${depth}`)]
    for (const answer of answers) expect([answer, (kinds.get(answer) ?? 0) > 100]).toEqual([answer, true])
  })
})
