import type { RuleSet } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { withPolicy } from './policy-scene.ts'
import type { StoreHarness } from './store-scene.ts'

const RULE = { dimension: 'user', limit: 10, window: '1m' } as const

const RULES: RuleSet = {
  rules: [
    { ...RULE, name: 'default', resource: '*' },
    { ...RULE, name: 'orders', resource: '/orders/:id', regions: { US: 2 } },
    { ...RULE, name: 'orders-delete', resource: '/orders/:id', methods: ['DELETE'] },
    { ...RULE, name: 'users', resource: '/users' },
    { ...RULE, name: 'by-key', resource: '*', dimension: 'apiKey' },
    { ...RULE, name: 'watched', resource: '*', dimension: 'ip', shadow: true },
    { ...RULE, name: 'old', resource: '/old', enabled: false },
  ],
  tiers: [{ name: 'premium', multiplier: 3 }],
  incident: 0.5,
}

/** Explanations, usage and resets. */
export function explainTests(harness: StoreHarness): void {
  describe('explain', () => {
    it('says what became of every rule, and why', async () => {
      await withPolicy(harness, RULES, async ({ engine, check }) => {
        const request = { resource: '/Orders/17/', method: 'GET', user: 'u', ip: '192.0.2.1' }
        await check(request)
        const { rules, readings, decision } = await engine.explain(request)
        expect(readings).toEqual(['/orders/17'])
        expect(decision).toMatchObject({ allowed: true, rule: 'orders', remaining: 9 })
        const fates = Object.fromEntries(rules.map(({ rule, fate }) => [rule, fate]))
        expect(fates).toEqual({
          orders: 'applies',
          watched: 'shadow',
          default: 'replaced',
          'orders-delete': 'no-match',
          users: 'no-match',
          'by-key': 'nobody',
          old: 'disabled',
        })
        const why = Object.fromEntries(rules.map((rule) => [rule.rule, rule.why]))
        expect(why['default']).toContain('orders')
        expect(why['orders-delete']).toContain('DELETE')
        expect(why['users']).toContain('orders')
        expect(why['by-key']).toContain('apiKey')
        expect(rules[0]?.counters).toEqual([expect.objectContaining({ limit: 10, used: 1, remaining: 9 })])
      })
    })

    it('says where the limit comes from, step by step', async () => {
      await withPolicy(harness, RULES, async ({ engine }) => {
        const request = { resource: '/orders/17', user: 'u', region: 'US', tier: 'premium', method: 'GET' }
        engine.entries.setIncident({ active: true })
        const steps = async (): Promise<unknown[]> => {
          const { rules } = await engine.explain(request)
          return rules[0]!.steps.map(({ source, limit }) => [source, limit])
        }
        expect(await steps()).toEqual([
          ['rule', 10],
          ['region', 20],
          ['tier', 60],
          ['incident', 30],
        ])
        engine.entries.putOverride({ dimension: 'user', entity: 'u', resource: '/orders/:id', terms: { limit: 500 } })
        expect(await steps()).toEqual([
          ['rule', 10],
          ['override', 500],
          ['incident', 250],
        ])
        expect((await engine.explain(request)).tier).toEqual({ name: 'premium', from: 'request' })
      })
    })

    it('shows who denied, and what an exemption or a block does', async () => {
      const ruleSet: RuleSet = {
        ...RULES,
        exemptions: [{ name: 'health', match: { resource: '/health' } }],
        denyList: [{ name: 'abuse', match: { dimension: 'user', entities: ['mallory'] } }],
      }
      await withPolicy(harness, ruleSet, async ({ engine }) => {
        expect(await engine.explain({ resource: '/health' })).toMatchObject({ exemption: 'health', rules: [] })
        expect(await engine.explain({ resource: '/x', user: 'mallory' })).toMatchObject({
          denied: 'abuse',
          decision: { allowed: false, reason: 'denied' },
        })
        engine.block('user', 'u', { duration: '1m' })
        expect(await engine.explain({ resource: '/x', user: 'u' })).toMatchObject({ block: { entity: 'u' } })
      })
    })

    it('charges nothing', async () => {
      await withPolicy(harness, RULES, async ({ engine, check }) => {
        for (let round = 0; round < 20; round++) await engine.explain({ resource: '/users', user: 'u' })
        expect(await check({ resource: '/users', user: 'u' })).toMatchObject({ remaining: 9 })
      })
    })
  })

  describe('usage and reset', () => {
    it('show every counter of a caller, and forget them', async () => {
      await withPolicy(harness, RULES, async ({ engine, check }) => {
        await check({ resource: '/users', user: 'u' })
        await check({ resource: '/elsewhere', user: 'u', cost: 3 })
        const used = async (resource?: string): Promise<unknown> => {
          const reports = await engine.usage({ user: 'u', ...(resource === undefined ? {} : { resource }) })
          return Object.fromEntries(reports.map(({ rule, counters }) => [rule, counters[0]?.used]))
        }
        expect(await used()).toEqual({ default: 3, orders: 0, 'orders-delete': 0, users: 1 })
        expect(await used('/users')).toEqual({ users: 1 })
        await engine.reset({ user: 'u', resource: '/users' })
        expect(await used()).toEqual({ default: 3, orders: 0, 'orders-delete': 0, users: 0 })
        await engine.reset({ user: 'u' })
        expect(await used()).toEqual({ default: 0, orders: 0, 'orders-delete': 0, users: 0 })
      })
    })
  })
}
