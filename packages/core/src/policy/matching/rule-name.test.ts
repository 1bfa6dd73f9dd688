import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileRule } from '../../rule-kinds.ts'
import { canonicalPattern, parsePattern } from './resource-pattern.ts'
import type { RuleOrigin } from './rule-name.ts'
import { canonicalDimension, canonicalMethods, LONGEST_RULE_NAME, RESERVED_NAME, ruleName } from './rule-name.ts'

type Named = Parameters<typeof ruleName>[0]

/** What a rule is about, in one spelling. */
function subjectOf({ resource, methods, dimension }: Named, origin: RuleOrigin | undefined): string {
  return JSON.stringify([origin, canonicalPattern(resource), canonicalMethods(methods), canonicalDimension(dimension)])
}

const segments = fc.oneof(
  fc.constantFrom('orders', 'Orders', ':id', '*', 'a@b', 'a b', 'ä', '%40', '@user', '@@', 'GET:', 'x'.repeat(90)),
  fc.string({ unit: fc.constantFrom('a', 'b', '-', '@', ':', '.', '+', ' ', '_', 'é'), minLength: 1, maxLength: 4 }),
)
const resources = fc
  .oneof(
    fc.array(segments, { maxLength: 4 }).map((parts) => `/${parts.join('/')}`),
    fc.constantFrom('*', 'checkout', 'tier:a', 'shadow:x', 'get:/a', '_a', '.a', '@', 'get:a', 'post:a'),
    segments,
  )
  .filter((text) => !('problem' in parsePattern(text)))
const dimensionNames = fc.constantFrom('user', 'ip', 'tenant', 'GET', 'a', 'b', 'a.b', 'a-b', 'd'.repeat(64))
const named: fc.Arbitrary<Named> = fc.record(
  {
    resource: resources,
    methods: fc.array(fc.constantFrom('GET', 'get', 'POST', 'M-SEARCH', 'X_Y'), { minLength: 1, maxLength: 3 }),
    dimension: fc.uniqueArray(dimensionNames, { minLength: 1, maxLength: 3 }).map((names) => names.join('+')),
  },
  { requiredKeys: ['resource', 'dimension'] },
)
const origins: fc.Arbitrary<RuleOrigin | undefined> = fc.constantFrom(
  undefined,
  { part: 'tier', name: 'a' },
  { part: 'tier', name: 'b'.repeat(64) },
  { part: 'exemption', name: 'a' },
)

describe('the name of a rule', () => {
  it.each<[Named, RuleOrigin | undefined, string]>([
    [{ resource: '/orders', dimension: 'user', name: 'mine' }, undefined, 'mine'],
    [{ resource: '/orders', dimension: 'user', name: 'mine' }, { part: 'rules', name: '' }, 'mine'],
    [{ resource: '/orders', dimension: 'user', name: 'mine' }, { part: 'tier', name: 'gold' }, 'tier:gold:mine'],
    [{ resource: '/orders', dimension: 'user' }, undefined, '/orders@user'],
    [{ resource: '/API//Orders/', dimension: 'user' }, undefined, '/api/orders@user'],
    [{ resource: '/orders/:id', dimension: 'user' }, undefined, '/orders/:any@user'],
    [{ resource: '*', dimension: 'ip' }, undefined, '*@ip'],
    [{ resource: 'checkout', dimension: 'user+ip' }, undefined, 'checkout@ip@user'],
    [{ resource: '/orders', dimension: 'user', methods: ['post', 'GET'] }, undefined, 'GET:POST:/orders@user'],
    [{ resource: '/a', dimension: 'ip' }, { part: 'tier', name: 'gold' }, 'tier:gold:/a@ip'],
    [{ resource: '/a', dimension: 'ip' }, { part: 'exemption', name: 'x' }, 'exemption:x:/a@ip'],
    [{ resource: '/grüße', dimension: 'ip' }, undefined, '/gr-sse@ip@@55a38b36dfc5'],
    [{ resource: 'tier:gold', dimension: 'ip' }, undefined, 'tier-gold@ip@@f7a72de4c1be'],
    [{ resource: '_own', dimension: 'ip' }, undefined, '/own@ip@@b75b1d889d8c'],
  ])('of %j in %j is %s', (rule, origin, name) => {
    expect(ruleName(rule, origin)).toBe(name)
  })

  it('ends in a hash where it would be too long', () => {
    const name = ruleName({ resource: `/${'a'.repeat(200)}`, dimension: 'ip' })
    expect(name).toMatch(/^\/a{81}@@[0-9a-f]{12}$/)
    expect(name).toHaveLength(LONGEST_RULE_NAME)
  })

  it('is one that limits can have, also with what is put before it', () => {
    fc.assert(
      fc.property(named, origins, (rule, origin) => {
        const name = ruleName(rule, origin)
        expect(name.length).toBeLessThanOrEqual(LONGEST_RULE_NAME)
        for (const whole of [name, `penalty:shadow:${Number.MAX_SAFE_INTEGER}:${name}`]) {
          expect(compileRule(whole, { limit: 1, window: '1s' })).toHaveLength(1)
        }
        expect(RESERVED_NAME.test(name)).toBe(origin !== undefined)
      }),
    )
  })

  it('is the same for two rules only if they are about the same', () => {
    fc.assert(
      fc.property(named, origins, named, origins, (one, origin, other, otherOrigin) => {
        const isSame = subjectOf(one, origin) === subjectOf(other, otherOrigin)
        expect(ruleName(one, origin) === ruleName(other, otherOrigin)).toBe(isSame)
      }),
      { numRuns: 3000 },
    )
  })

  it.each<[Named, Named]>([
    [
      { resource: '/a@b', dimension: 'user' },
      { resource: '/a', dimension: 'b+user' },
    ],
    [
      { resource: 'get:a', dimension: 'user' },
      { resource: 'a', methods: ['GET'], dimension: 'user' },
    ],
    [
      { resource: '/a', methods: ['GET'], dimension: 'user' },
      { resource: '/a', dimension: 'GET+user' },
    ],
    [
      { resource: '/a-b', dimension: 'user' },
      { resource: '/a b', dimension: 'user' },
    ],
    [
      { resource: '_a', dimension: 'user' },
      { resource: '/a', dimension: 'user' },
    ],
  ])('is not the same for %j and %j', (one, other) => {
    expect(ruleName(one)).not.toBe(ruleName(other))
  })

  it('is different for all of 20,000 resources that look alike in it', () => {
    const names = Array.from({ length: 20_000 }, (_, index) =>
      ruleName({ resource: `/${String.fromCodePoint(0x4e_00 + index)}`, dimension: 'ip' }),
    )
    expect(new Set(names).size).toBe(names.length)
  })
})
