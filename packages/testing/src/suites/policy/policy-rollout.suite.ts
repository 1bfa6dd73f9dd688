import type { PolicyEvent, PolicyRequest, PolicyVersions, RuleSet } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import type { StoreHarness } from '../store/store-fixture.ts'
import { withPolicy } from './policy-fixture.ts'

function ruleSetOf(limit: number, more: object = {}): RuleSet {
  return { rules: [{ name: 'base', resource: '*', dimension: 'user', limit, window: '1m', ...more }] }
}

function denialsIn(events: readonly PolicyEvent[]): number {
  return events.filter((event) => event.type === 'shadow' && !event.allowed).length
}

function measuredIn(events: readonly PolicyEvent[]): number {
  return events.filter((event) => event.type === 'shadow').length
}

/** How often each answer was given. */
function tally<T>(answers: readonly T[]): ReadonlyMap<T, number> {
  const counts = new Map<T, number>()
  for (const answer of answers) counts.set(answer, (counts.get(answer) ?? 0) + 1)
  return counts
}

/** Events of rules that were measured, counted by rule and what they would have said. */
function measuredBy(events: readonly PolicyEvent[]): Readonly<Record<string, number>> {
  const measured = events.filter((event) => event.type === 'shadow')
  return Object.fromEntries(tally(measured.map(({ rule, allowed }) => `${rule} ${allowed ? 'allows' : 'denies'}`)))
}

/** Rules and versions that are measured before they are enforced. */
export function rolloutTests(harness: StoreHarness): void {
  besideTests(harness)
  describe('shadow', () => {
    it('a rule in shadow is measured and never denies', async () => {
      await withPolicy(harness, ruleSetOf(2, { shadow: true }), async ({ admitted, events, settled }) => {
        expect(await admitted(5, { resource: '/x', user: 'u' })).toBe(5)
        await settled()
        expect([measuredIn(events), denialsIn(events)]).toEqual([5, 3])
        const [first] = events.filter(({ type }) => type === 'shadow')
        expect(first).toEqual({ type: 'shadow', rule: 'base', dimension: 'user', allowed: true, version: 0 })
      })
    })

    it('a rule in shadow counts only what the enforced rules let through', async () => {
      const ruleSet: RuleSet = {
        rules: [
          { name: 'real', resource: '*', dimension: 'user', limit: 3, window: '1m' },
          { name: 'new', resource: '*', dimension: 'tenant', limit: 2, window: '1m', shadow: true },
        ],
      }
      await withPolicy(harness, ruleSet, async ({ admitted, events, settled }) => {
        expect(await admitted(9, { resource: '/x', user: 'u', tenant: 't' })).toBe(3)
        await settled()
        expect([measuredIn(events), denialsIn(events)]).toEqual([3, 1])
      })
    })

    it('a candidate that cannot be measured does not touch requests, also those after it', async () => {
      const size = (): number => {
        throw new Error('the size is not known')
      }
      await withPolicy(harness, { costFunctions: { size } }, async ({ engine, check, events }) => {
        const candidate = {
          number: 2,
          ruleSet: ruleSetOf(5, { cost: { function: 'size' } }),
          stage: 'shadow',
          percent: 0,
        } as const
        engine.use({ enforced: { number: 1, ruleSet: ruleSetOf(3) }, candidate })
        const request = { resource: '/x', user: 'u' }
        const answers = [await check(request), await check(request), await check(request), await check(request)]
        expect(answers.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
          [true, 2],
          [true, 1],
          [true, 0],
          [false, 0],
        ])
        expect(events).toEqual(Array.from({ length: 3 }, () => ({ type: 'shadow-failed', error: expect.any(Error) })))
      })
    })

    it('a rule at n percent is enforced for the same callers each time, and measured for the others', async () => {
      await withPolicy(harness, ruleSetOf(1, { percent: 30 }), async ({ check, events, settled }) => {
        let denied = 0
        for (let user = 0; user < 300; user++) {
          const request = { resource: '/x', user: `user-${user}` }
          const first = await check(request)
          const second = await check(request)
          expect(first.allowed).toBe(true)
          if (!second.allowed) denied++
        }
        await settled()
        expect(denied).toBeGreaterThan(50)
        expect(denied).toBeLessThan(130)
        expect(denialsIn(events)).toBe(300 - denied)
      })
    })
  })

  describe('versions', () => {
    const enforced = { number: 1, ruleSet: ruleSetOf(5) }

    it('a candidate in shadow has counters of its own', async () => {
      await withPolicy(harness, {}, async ({ engine, admitted, events, settled }) => {
        engine.use({ enforced, candidate: { number: 2, ruleSet: ruleSetOf(2), stage: 'shadow', percent: 0 } })
        expect(await admitted(6, { resource: '/x', user: 'u' })).toBe(5)
        await settled()
        expect([measuredIn(events), denialsIn(events)]).toEqual([5, 3])
        expect(events[0]).toMatchObject({ rule: 'base', version: 2 })
      })
    })

    it('a candidate at n percent is enforced for its share, and keeps its counters when enforced for all', async () => {
      await withPolicy(harness, {}, async ({ engine, admitted, check, events, settled }) => {
        engine.use({ enforced, candidate: { number: 2, ruleSet: ruleSetOf(2), stage: 'percent', percent: 50 } })
        const counts = new Map<number, number>()
        for (let user = 0; user < 100; user++) {
          const count = await admitted(6, { resource: '/x', user: `user-${user}` })
          counts.set(count, (counts.get(count) ?? 0) + 1)
        }
        expect([...counts.keys()].toSorted((one, other) => one - other)).toEqual([2, 5])
        expect(counts.get(2)).toBeGreaterThan(25)
        expect(counts.get(2)).toBeLessThan(75)
        await settled()
        // Measured for those only that it is not enforced for, each time they were let through.
        expect(measuredIn(events)).toBe(5 * counts.get(5)!)
        engine.use({ enforced: { number: 2, ruleSet: ruleSetOf(2) } })
        expect(await check({ resource: '/x', user: 'user-1' })).toMatchObject({ allowed: false, version: 2 })
        expect(await admitted(3, { resource: '/x', user: 'new' })).toBe(2)
      })
    })

    it('a request is decided by one version, and says which', async () => {
      await withPolicy(harness, {}, async ({ engine, check }) => {
        expect(await check({ resource: '/x', user: 'u' })).toMatchObject({ reason: 'unlimited', version: 0 })
        engine.use({ enforced })
        expect(await check({ resource: '/x', user: 'u' })).toMatchObject({ version: 1, limit: 5 })
        expect(engine.version).toBe(1)
      })
    })

    it('a rule set that cannot be used is rejected whole, and the old one stays', async () => {
      await withPolicy(harness, {}, async ({ engine, check }) => {
        engine.use({ enforced })
        const bad = { rules: [...ruleSetOf(9).rules, { resource: 'no slash*', dimension: 'user', limit: -1 }] }
        expect(() => engine.use({ enforced: { number: 2, ruleSet: bad as unknown as RuleSet } })).toThrow(
          expect.objectContaining({ code: 'SLUICE_INVALID_RULE_SET' }),
        )
        const candidate = { number: 3, ruleSet: bad as unknown as RuleSet, stage: 'shadow', percent: 0 } as const
        expect(() => engine.use({ enforced: { number: 4, ruleSet: ruleSetOf(1) }, candidate })).toThrow(
          'SLUICE_INVALID',
        )
        expect(await check({ resource: '/x', user: 'u' })).toMatchObject({ version: 1, limit: 5 })
      })
    })
  })
}

const USER = { dimension: 'user', window: '1m' } as const
const ALL = { ...USER, name: 'all', resource: '*', limit: 5 }

/** Rules that are tried beside those that are enforced. */
function besideTests(harness: StoreHarness): void {
  describe('a rule that is tried beside an enforced one', () => {
    const tried = { ...USER, name: 'new', limit: 2 }
    const places: readonly (readonly [string, RuleSet, Partial<PolicyRequest>])[] = [
      ['for a path', { rules: [ALL, { ...tried, resource: '/orders', shadow: true }] }, {}],
      ['at 0 percent', { rules: [ALL, { ...tried, resource: '/orders', percent: 0 }] }, {}],
      [
        'for a method',
        {
          rules: [
            { ...ALL, resource: '/orders' },
            { ...tried, resource: '/orders', methods: ['POST'], shadow: true },
          ],
        },
        { method: 'POST' },
      ],
      [
        'in a tier',
        { rules: [ALL], tiers: [{ name: 'gold', rules: [{ ...tried, resource: '*', shadow: true }] }] },
        { tier: 'gold' },
      ],
      [
        'for a path, in a tier with a rule for all paths',
        {
          rules: [{ ...ALL, name: 'general', limit: 100 }],
          tiers: [{ name: 'gold', rules: [ALL, { ...tried, resource: '/orders', shadow: true }] }],
        },
        { tier: 'gold' },
      ],
      [
        'of an exemption',
        {
          rules: [],
          exemptions: [
            {
              name: 'services',
              match: { services: ['billing'] },
              rules: [ALL, { ...tried, resource: '/orders', shadow: true }],
            },
          ],
        },
        { service: 'billing' },
      ],
    ]

    it.each(places)('%s takes nothing away from it, and is measured', async (_place, ruleSet, request) => {
      await withPolicy(harness, ruleSet, async ({ admitted, events, settled }) => {
        expect(await admitted(20, { resource: '/orders', user: 'u', ...request })).toBe(5)
        await settled()
        expect(Object.values(measuredBy(events))).toEqual([2, 3])
      })
    })

    it('takes its place for the share of callers that it is enforced for, and is measured for the others', async () => {
      const ruleSet: RuleSet = { rules: [ALL, { ...tried, resource: '/orders', percent: 30 }] }
      await withPolicy(harness, ruleSet, async ({ engine, admitted, check, events, settled }) => {
        const counts: number[] = []
        for (let user = 0; user < 100; user++) {
          const request = { resource: '/orders', user: `user-${user}` }
          const count = await admitted(7, request)
          counts.push(count)
          const { limits, rule } = await check(request)
          expect([limits.length, rule]).toEqual([1, count === 2 ? 'new' : 'all'])
          const { rules } = await engine.explain(request)
          expect(rules.map((one) => [one.rule, one.fate])).toEqual(
            count === 2
              ? [
                  ['new', 'applies'],
                  ['all', 'replaced'],
                ]
              : [
                  ['all', 'applies'],
                  ['new', 'shadow'],
                ],
          )
          const usage = await engine.usage(request)
          expect(usage.map((one) => one.rule).toSorted()).toEqual(count === 2 ? ['new'] : ['all', 'new'])
        }
        const groups = tally(counts)
        expect([...groups.keys()].toSorted()).toEqual([2, 5])
        expect(groups.get(2)).toBeGreaterThan(15)
        expect(groups.get(2)).toBeLessThan(45)
        await settled()
        expect(measuredBy(events)).toEqual({ 'new allows': 2 * groups.get(5)!, 'new denies': 3 * groups.get(5)! })
      })
    })

    it('holds for the first of several shares that a caller is in', async () => {
      const ruleSet: RuleSet = {
        rules: [
          { ...USER, name: 'watched', resource: '/orders/17/items', limit: 1, shadow: true },
          { ...USER, name: 'some', resource: '/orders/:id/items', limit: 1, percent: 20 },
          { ...USER, name: 'half', resource: '/orders/*', limit: 2, percent: 50 },
          { ...USER, name: 'all', resource: '*', limit: 3 },
        ],
      }
      const expected = [
        { count: 1, measured: ['watched'] },
        { count: 2, measured: ['some', 'watched'] },
        { count: 3, measured: ['half', 'some', 'watched'] },
      ]
      await withPolicy(harness, ruleSet, async ({ admitted, events, settled }) => {
        const counts: number[] = []
        for (let user = 0; user < 120; user++) {
          events.length = 0
          const count = await admitted(4, { resource: '/orders/17/items', user: `user-${user}` })
          await settled()
          const measured = tally(events.map((event) => (event.type === 'shadow' ? event.rule : event.type)))
          expect({ count, measured: [...measured.keys()].toSorted() }).toEqual(expected[count - 1])
          expect([...new Set(measured.values())]).toEqual([count])
          counts.push(count)
        }
        const groups = tally(counts)
        expect(groups.get(1)).toBeGreaterThan(10)
        expect(groups.get(2)).toBeGreaterThan(25)
        expect(groups.get(3)).toBeGreaterThan(25)
      })
    })

    it('takes the place of a rule for all from the tier, for its share of the members', async () => {
      const ruleSet: RuleSet = {
        rules: [ALL],
        tiers: [{ name: 'gold', rules: [{ ...tried, resource: '*', percent: 50 }] }],
      }
      await withPolicy(harness, ruleSet, async ({ admitted }) => {
        const counts: number[] = []
        for (let user = 0; user < 60; user++) {
          counts.push(await admitted(7, { resource: '/x', user: `user-${user}`, tier: 'gold' }))
        }
        const groups = tally(counts)
        expect([...groups.keys()].toSorted()).toEqual([2, 5])
        expect(groups.get(2)).toBeGreaterThan(15)
        expect(groups.get(5)).toBeGreaterThan(15)
      })
    })

    it('is not measured where a more specific one is enforced', async () => {
      const ruleSet: RuleSet = {
        rules: [
          { ...ALL, shadow: true },
          { ...tried, resource: '/orders' },
        ],
      }
      await withPolicy(harness, ruleSet, async ({ admitted, events, settled }) => {
        expect(await admitted(4, { resource: '/orders', user: 'u' })).toBe(2)
        await settled()
        expect(events).toEqual([])
        expect(await admitted(7, { resource: '/other', user: 'u' })).toBe(7)
      })
    })

    it('and always holds is measured beside it, or enforced beside it, and takes no place', async () => {
      const always = { ...tried, resource: '/orders', always: true, limit: 3 }
      const request = { resource: '/orders', user: 'u', tier: 'gold' }
      const shadow: RuleSet = { rules: [ALL, { ...always, shadow: true }] }
      await withPolicy(harness, shadow, async ({ admitted, events, settled }) => {
        expect(await admitted(9, request)).toBe(5)
        await settled()
        expect(measuredBy(events)).toEqual({ 'new allows': 3, 'new denies': 2 })
      })
      const wide = { ...always, limit: 100 }
      await withPolicy(harness, { rules: [ALL, wide] }, async ({ admitted }) => {
        expect(await admitted(9, request)).toBe(5)
      })
      const inTier: RuleSet = { rules: [ALL], tiers: [{ name: 'gold', rules: [wide] }] }
      await withPolicy(harness, inTier, async ({ admitted }) => expect(await admitted(9, request)).toBe(5))
    })

    it('takes nothing away in any spelling of a path', async () => {
      const ruleSet: RuleSet = {
        rules: [ALL, { ...tried, resource: '/files/a/b', limit: 3 }],
        tiers: [{ name: 'gold', rules: [{ ...tried, resource: '/files/:name', limit: 100 }] }],
      }
      // As one segment it is the tier's, as two it is the rule's for all.
      const request = { resource: '/files/a%2Fb', user: 'u' }
      await withPolicy(harness, ruleSet, async ({ admitted, check }) => {
        expect(await admitted(9, { ...request, tier: 'gold' })).toBe(3)
        expect(await check({ resource: '/files/ab', user: 'v', tier: 'gold' })).toMatchObject({ limit: 100 })
      })
    })

    it('is of the same dimension, however its names are ordered', async () => {
      const ruleSet: RuleSet = {
        rules: [
          { ...ALL, dimension: 'tenant+user' },
          { ...ALL, name: 'orders', resource: '/orders', dimension: 'user+tenant', limit: 7 },
        ],
      }
      await withPolicy(harness, ruleSet, async ({ admitted }) => {
        expect(await admitted(9, { resource: '/orders', user: 'u', tenant: 't' })).toBe(7)
      })
    })

    it('is enforced for the same callers in a version that is only measured', async () => {
      const { rules } = ruleSetOf(1, { percent: 50 })
      await withPolicy(harness, {}, async ({ engine, admitted, events, settled }) => {
        const denied = async (versions: PolicyVersions): Promise<readonly boolean[]> => {
          engine.use(versions)
          const each: boolean[] = []
          for (let user = 0; user < 20; user++) {
            events.length = 0
            const count = await admitted(2, { resource: '/x', user: `user-${user}` })
            await settled()
            each.push(
              count < 2 || events.some((event) => event.type === 'shadow' && event.version === 2 && !event.allowed),
            )
          }
          return each
        }
        const measured = await denied({ candidate: { number: 2, ruleSet: { rules }, stage: 'shadow', percent: 0 } })
        const enforced = await denied({ enforced: { number: 2, ruleSet: { rules } } })
        expect(measured).toEqual(enforced)
        expect(new Set(enforced).size).toBe(2)
      })
    })
  })
}
