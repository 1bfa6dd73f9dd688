import type { PolicyRequest, RuleSet } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import type { StoreHarness } from '../store/store-fixture.ts'
import type { PolicyFixture } from './policy-fixture.ts'
import { withPolicy } from './policy-fixture.ts'

const RULE = { name: 'base', resource: '*', dimension: 'user', limit: 10, window: '1m' } as const

const ERROR_RATE = {
  cutAbove: 0.5,
  restoreBelow: 0.1,
  window: '10s',
  leastCalls: 10,
  step: 0.5,
  least: 0.2,
  hold: '5s',
} as const

/** Limits that depend on place, time, health and tier. */
export function adaptiveLimitTests(harness: StoreHarness): void {
  describe('geo-aware limits', () => {
    it('are multiplied by region, those of a rule before those of the rule set', async () => {
      const ruleSet: RuleSet = {
        rules: [RULE, { ...RULE, name: 'own', resource: '/own', regions: { US: 3 } }],
        regions: { US: 2, XX: 0.5 },
      }
      await withPolicy(harness, ruleSet, async ({ admitted, check }) => {
        expect(await admitted(30, { resource: '/x', user: 'us', region: 'US' })).toBe(20)
        expect(await admitted(30, { resource: '/x', user: 'xx', region: 'XX' })).toBe(5)
        expect(await admitted(30, { resource: '/x', user: 'de', region: 'DE' })).toBe(10)
        expect(await check({ resource: '/own', user: 'us', region: 'US' })).toMatchObject({ limit: 30 })
      })
    })
  })

  describe('adaptive limits', () => {
    it('are another by schedule', async () => {
      // The clock starts on 2030-01-01, a Tuesday, at 00:00 UTC.
      const schedule = [{ days: ['tuesday'], from: '01:00', to: '02:00', multiplier: 2 }] as const
      await withPolicy(harness, { rules: [{ ...RULE, schedule }] }, async ({ check, advance }) => {
        const request = { resource: '/x', user: 'u' }
        expect(await check(request)).toMatchObject({ limit: 10 })
        await advance(3_600_000)
        expect(await check(request)).toMatchObject({ limit: 20, remaining: 19 })
        await advance(3_600_000)
        expect(await check(request)).toMatchObject({ limit: 10, remaining: 9 })
      })
    })

    it('are cut by the switch of an incident, overrides too, and come back with it', async () => {
      const ruleSet: RuleSet = {
        rules: [RULE, { ...RULE, name: 'vital', resource: '/vital', incident: 1 }],
        incident: 0.2,
      }
      await withPolicy(harness, ruleSet, async ({ engine, admitted, check, clock, advance }) => {
        engine.entries.putOverride({ dimension: 'user', entity: 'vip', resource: '*', terms: { limit: 100 } })
        engine.entries.setIncident({ active: true, until: clock.nowMicros() / 1000 + 60_000 })
        expect(await admitted(10, { resource: '/x', user: 'u' })).toBe(2)
        expect(await check({ resource: '/x', user: 'vip' })).toMatchObject({ limit: 20 })
        expect(await check({ resource: '/vital', user: 'u' })).toMatchObject({ limit: 10 })
        engine.entries.setIncident({ active: false })
        expect(await admitted(10, { resource: '/x', user: 'u' })).toBe(8)
        engine.entries.setIncident({ active: true, until: clock.nowMicros() / 1000 + 60_000 })
        await advance(60_000)
        expect(await check({ resource: '/x', user: 'u' })).toMatchObject({ limit: 10 })
      })
    })

    it('are cut while too many calls fail, and given back step by step', async () => {
      await withPolicy(harness, { rules: [RULE], errorRate: ERROR_RATE }, async ({ engine, check, advance }) => {
        const request = { resource: '/x', user: 'u' }
        const limitAfter = async (failed: number, fine: number): Promise<number> => {
          for (let call = 0; call < failed; call++) engine.report(request, true)
          for (let call = 0; call < fine; call++) engine.report(request, false)
          return (await engine.peek(request)).limit
        }
        expect(await limitAfter(4, 0)).toBe(10)
        expect(await limitAfter(6, 0)).toBe(5)
        await advance(5000)
        expect(await limitAfter(8, 2)).toBe(2)
        await advance(5000)
        expect(await limitAfter(3, 7)).toBe(2)
        await advance(5000)
        expect(await limitAfter(0, 40)).toBe(5)
        await advance(5000)
        expect(await limitAfter(0, 20)).toBe(10)
        expect(await check(request)).toMatchObject({ allowed: true, limit: 10 })
      })
    })
  })

  describe('limits that are cut by error rate', () => {
    const errorRate = ERROR_RATE
    const own = { ...RULE, name: 'own', errorRate }
    const failing = ({ engine }: PolicyFixture, request: PolicyRequest): void => {
      for (let call = 0; call < 10; call++) engine.report(request, true)
    }

    it('are those of the rules for what fails, of tiers and exemptions too', async () => {
      const ruleSet: RuleSet = {
        rules: [RULE, { ...RULE, name: 'orders', resource: '/orders', errorRate }],
        tiers: [{ name: 'gold', rules: [own] }],
        exemptions: [
          {
            name: 'admin',
            match: { services: ['billing'], resource: '/admin/*', methods: ['POST'] },
            rules: [own],
          },
          { name: 'services', match: { services: ['billing'] }, rules: [{ ...own, dimension: 'global' }] },
        ],
      }
      await withPolicy(harness, ruleSet, async (fixture) => {
        const limits = async (resource: string): Promise<readonly number[]> => {
          const request = { resource, user: 'u', method: 'POST' }
          const gold = await fixture.engine.peek({ ...request, tier: 'gold' })
          const service = await fixture.engine.peek({ ...request, service: 'billing' })
          return [(await fixture.engine.peek(request)).limit, gold.limit, service.limit]
        }
        expect(await limits('/orders')).toEqual([10, 10, 10])
        failing(fixture, { resource: '/elsewhere', method: 'POST' })
        // A rule for everything hears of every failure; one within an exemption for some resources only of theirs.
        expect(await limits('/orders')).toEqual([10, 5, 5])
        expect(await limits('/admin/x')).toEqual([10, 5, 10])
        failing(fixture, { resource: '/orders', method: 'GET' })
        expect(await limits('/orders')).toEqual([5, 5, 5])
        failing(fixture, { resource: '/admin/x', method: 'GET' })
        expect(await limits('/admin/x')).toEqual([10, 5, 10])
        failing(fixture, { resource: '/admin/x', method: 'POST' })
        expect(await limits('/admin/x')).toEqual([10, 5, 5])
      })
    })

    it('are those of a candidate, by what it says itself', async () => {
      const before: RuleSet = { rules: [own], errorRate }
      const after: RuleSet = {
        rules: [
          { ...own, errorRate: { ...errorRate, step: 0.8 } },
          { ...RULE, name: 'ip', dimension: 'ip' },
        ],
        errorRate: { ...errorRate, step: 0.3 },
      }
      await withPolicy(harness, { rules: [] }, async (fixture) => {
        const { engine } = fixture
        const request = { resource: '/x', user: 'u', ip: '192.0.2.1' }
        const limits = async (): Promise<readonly number[]> => {
          const { limit, limits: all } = await engine.peek(request)
          return all.length === 0 ? [limit] : all.map((one) => one.limit)
        }
        const stage = (percent: number): void =>
          engine.use({
            enforced: { number: 1, ruleSet: before },
            candidate: { number: 2, ruleSet: after, stage: 'percent', percent },
          })
        stage(100)
        expect(await limits()).toEqual([10, 10])
        failing(fixture, request)
        expect(await limits()).toEqual([8, 3])
        // The enforced rules heard of it as well, and what was heard outlives the versions.
        stage(0)
        expect(await limits()).toEqual([5])
        engine.use({ enforced: { number: 2, ruleSet: after } })
        expect(await limits()).toEqual([8, 3])
      })
    })

    it('are cut for a candidate that is only measured too', async () => {
      await withPolicy(harness, { rules: [] }, async (fixture) => {
        const { engine, events, check, settled } = fixture
        engine.use({ candidate: { number: 2, ruleSet: { rules: [own] }, stage: 'shadow', percent: 0 } })
        failing(fixture, { resource: '/x' })
        for (let call = 0; call < 7; call++) await check({ resource: '/x', user: 'u' })
        await settled()
        const measured = events.filter(({ type }) => type === 'shadow')
        expect(measured.map((event) => 'allowed' in event && event.allowed)).toEqual([
          ...Array<boolean>(5).fill(true),
          ...Array<boolean>(2).fill(false),
        ])
      })
    })
  })

  describe('quotas and tiers', () => {
    it('unused units carry over to the next window, up to twice the limit', async () => {
      const rules = [{ ...RULE, algorithm: 'fixed-window', rollover: true, limit: 4, window: '1m' }] as const
      await withPolicy(harness, { rules }, async ({ admitted, advance }) => {
        const request = { resource: '/x', user: 'u' }
        expect(await admitted(3, request)).toBe(3)
        await advance(60_000)
        expect(await admitted(10, request)).toBe(5)
        await advance(60_000)
        expect(await admitted(10, request)).toBe(4)
      })
    })

    it('premium callers get ten times the limit, and a burst on top', async () => {
      const ruleSet: RuleSet = {
        rules: [
          { ...RULE, algorithm: 'fixed-window', limit: 5 },
          {
            name: 'hybrid',
            resource: '/hybrid',
            dimension: 'user',
            algorithm: 'hybrid',
            limit: 2,
            window: '1m',
            burst: { capacity: 3, refillPerSecond: 1 },
          },
        ],
        tiers: [
          { name: 'premium', multiplier: 10, burst: 7 },
          { name: 'entitled', entitled: true },
        ],
      }
      await withPolicy(harness, ruleSet, async ({ admitted }) => {
        expect(await admitted(100, { resource: '/x', user: 'free' })).toBe(5)
        expect(await admitted(100, { resource: '/x', user: 'rich', tier: 'premium' })).toBe(57)
        expect(await admitted(10, { resource: '/hybrid', user: 'free' })).toBe(2)
        expect(await admitted(10, { resource: '/hybrid', user: 'rich', tier: 'entitled' })).toBe(5)
      })
    })

    it('an incident cuts the burst of a tier too', async () => {
      const tiers = [{ name: 'premium', burst: 10 }]
      await withPolicy(harness, { rules: [RULE], tiers, incident: 0.5 }, async ({ engine, admitted }) => {
        engine.entries.setIncident({ active: true })
        expect(await admitted(30, { resource: '/x', user: 'u', tier: 'premium' })).toBe(10)
      })
    })

    it('a tier does not raise the limits of addresses and of all together', async () => {
      const ruleSet: RuleSet = {
        rules: [
          { ...RULE, name: 'ip', dimension: 'ip', limit: 3 },
          { ...RULE, name: 'all', dimension: 'global', limit: 4 },
        ],
        tiers: [{ name: 'premium', multiplier: 10 }],
      }
      await withPolicy(harness, ruleSet, async ({ check }) => {
        const decision = await check({ resource: '/x', ip: '192.0.2.1', tier: 'premium' })
        expect(decision.limits.map(({ limit }) => limit)).toEqual([3, 4])
      })
    })
  })
}
