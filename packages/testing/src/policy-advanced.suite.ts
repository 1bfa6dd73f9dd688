import type { RuleSet } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { withPolicy } from './policy-scene.ts'
import type { StoreHarness } from './store-scene.ts'

const RULE = { name: 'base', resource: '*', dimension: 'user', limit: 10, window: '1m' } as const

/** Limits that depend on place, time, health and behaviour. */
export function advancedTests(harness: StoreHarness): void {
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
      const errorRate = {
        cutAbove: 0.5,
        restoreBelow: 0.1,
        window: '10s',
        leastCalls: 10,
        step: 0.5,
        least: 0.2,
        hold: '5s',
      } as const
      await withPolicy(harness, { rules: [RULE], errorRate }, async ({ engine, check, advance }) => {
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

  describe('automatic blocks', () => {
    const penalty = { after: 3, within: '10s', block: '10s', growth: 3, longest: '1m', forgetAfter: '1h' } as const
    const ruleSet: RuleSet = { rules: [{ ...RULE, limit: 1, window: '1s', penalty }] }
    const request = { resource: '/x', user: 'u' }

    it('follow sustained violations, grow, end, are listed and can be lifted', async () => {
      const kept: unknown[] = []
      const options = { ruleSet, keepBlock: (block: unknown) => void kept.push(block) }
      await withPolicy(harness, options, async ({ engine, check, admitted, advance, settled }) => {
        expect(await admitted(3, request)).toBe(1)
        await settled()
        expect(await check(request)).toMatchObject({ allowed: false, reason: 'limit' })
        await settled()
        expect(await check(request)).toMatchObject({ allowed: false, reason: 'blocked', retryAfterMs: 10_000 })
        expect(engine.entries.blocks()).toEqual([expect.objectContaining({ entity: 'u', strikes: 1 })])
        await advance(10_000)
        expect(await admitted(4, request)).toBe(1)
        await settled()
        expect(await check(request)).toMatchObject({ reason: 'blocked', retryAfterMs: 30_000 })
        await engine.unblock('user', 'u')
        await advance(1000)
        expect(await check(request)).toMatchObject({ allowed: true })
        expect(kept).toHaveLength(2)
      })
    })

    it('count a refusal once, however many windows of the rule refuse', async () => {
      const windows = [
        { limit: 1, window: '1m' },
        { limit: 1, window: '1h' },
      ] as const
      const two: RuleSet = { rules: [{ name: 'two', resource: '*', dimension: 'user', windows, penalty }] }
      await withPolicy(harness, two, async ({ check, admitted, settled }) => {
        await admitted(3, request)
        await settled()
        expect(await check(request)).toMatchObject({ reason: 'limit' })
        await settled()
        expect(await check(request)).toMatchObject({ reason: 'blocked' })
      })
    })

    it('are as long as allowed at most, and forgotten after a while', async () => {
      await withPolicy(harness, ruleSet, async ({ check, admitted, advance, settled }) => {
        for (const lengthMs of [10_000, 30_000, 60_000, 60_000]) {
          await admitted(4, request)
          await settled()
          expect(await check(request)).toMatchObject({ reason: 'blocked', retryAfterMs: lengthMs })
          await advance(lengthMs)
        }
        await advance(3_600_000)
        await admitted(4, request)
        await settled()
        expect(await check(request)).toMatchObject({ reason: 'blocked', retryAfterMs: 10_000 })
      })
    })

    it('do not follow refusals that are spread out, nor those of others', async () => {
      await withPolicy(harness, ruleSet, async ({ check, admitted, advance, settled }) => {
        for (let round = 0; round < 4; round++) {
          await admitted(3, request)
          await settled()
          await advance(20_000)
        }
        expect(await check(request)).toMatchObject({ allowed: true })
        expect(await check({ ...request, user: 'v' })).toMatchObject({ allowed: true })
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
