import type { RuleSet } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import type { StoreHarness } from '../store/store-fixture.ts'
import { withPolicy } from './policy-fixture.ts'

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

/** Explanations. */
export function explainTests(harness: StoreHarness): void {
  describe('explain', () => {
    it('says what became of every rule, and why', async () => {
      await withPolicy(harness, RULES, async ({ engine, check }) => {
        const request = { resource: '/Orders/17/', method: 'GET', user: 'u', ip: '192.0.2.1' }
        await check(request)
        const { rules, readings, decision } = await engine.explain(request)
        expect(readings).toEqual(['/orders/17/'])
        expect(decision).toMatchObject({ allowed: true, rule: 'orders', remaining: 9 })
        const fates = Object.fromEntries(rules.map(({ rule, fate }) => [rule, fate]))
        expect(fates).toEqual({
          orders: 'applies',
          watched: 'shadow',
          default: 'replaced',
          'orders-delete': 'no-match',
          users: 'no-match',
          'by-key': 'no-identity',
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

    it('says why a rule for what comes after a slash does or does not match a path that ends in one', async () => {
      const order = { ...RULE, name: 'order', resource: '/orders/:id' } as const
      const whyOf = async (orders: string, more: object = {}): Promise<string> => {
        let why = ''
        const ruleSet: RuleSet = {
          rules: [
            { ...order, ...more },
            { ...RULE, name: 'orders', resource: orders },
          ],
        }
        await withPolicy(harness, ruleSet, async ({ engine }) => {
          const { rules } = await engine.explain({ resource: '/orders/', method: 'GET', user: 'u' })
          why = rules.find(({ rule }) => rule === 'order')!.why
        })
        return why
      }
      expect(await whyOf('/orders')).toBe('/orders/:id matches, any method')
      expect(await whyOf('/orders/')).toBe('another rule is written for the path with the slash at its end')
      expect(await whyOf('/orders', { methods: ['PUT'] })).toBe('the method is GET, the rule is for PUT')
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

    it('has a step for what changes the limit, and none for what does not', async () => {
      const errorRate = { cutAbove: 0.5, restoreBelow: 0.1, window: '10s', leastCalls: 10, hold: '1s' } as const
      const ruleSet: RuleSet = {
        rules: [
          { name: 'calls', resource: '*', dimension: 'user', limit: 1000, window: '1m', regions: { US: 3 } },
          {
            name: 'bucket',
            resource: '*',
            dimension: 'tenant',
            algorithm: 'token-bucket',
            capacity: 10,
            refillPerSecond: 1,
          },
        ],
        tiers: [{ name: 'gold', multiplier: 7, burst: 100 }],
        incident: 0.5,
        errorRate: { ...errorRate, step: 0.7, least: 0.1 },
      }
      await withPolicy(harness, ruleSet, async ({ engine }) => {
        for (let call = 0; call < 100; call++) engine.report({ resource: '/x' }, true)
        const request = { resource: '/x', user: 'u', tenant: 't', tier: 'gold', region: 'US' }
        const steps = async (index: number): Promise<unknown[]> => {
          const { rules, decision } = await engine.explain(request)
          const [rule, limit] = [rules[index]!, decision.limits[index]!.limit]
          expect(rule.steps.at(-1)?.limit).toBe(limit)
          return rule.steps.map((step) => `${step.source} ${step.limit}`)
        }
        expect(await steps(0)).toEqual(['rule 1000', 'region 3000', 'tier 21000', 'error-rate 14700'])
        expect(await steps(1)).toEqual(['rule 10', 'tier 170', 'error-rate 119'])
        engine.entries.setIncident({ active: true })
        expect(await steps(0)).toEqual(['rule 1000', 'region 3000', 'tier 21000', 'error-rate 14700', 'incident 7350'])
        // The burst is cut with the limit: 24 and 35.
        expect(await steps(1)).toEqual(['rule 10', 'tier 170', 'error-rate 119', 'incident 59'])
      })
    })

    it('says when a rule has no room for the burst of a tier, and so does an event', async () => {
      const ruleSet: RuleSet = {
        rules: [
          { ...RULE, name: 'saved', resource: '*', algorithm: 'fixed-window', limit: 5, rollover: true },
          { ...RULE, name: 'plain', resource: '/plain' },
          { ...RULE, name: 'by-ip', resource: '*', dimension: 'ip', algorithm: 'fixed-window', rollover: true },
        ],
        tiers: [{ name: 'gold', multiplier: 10, burst: 7 }, { name: 'silver' }],
      }
      await withPolicy(harness, ruleSet, async ({ engine, admitted, events }) => {
        const problem = 'a burst cannot be added to a rule with "rollover"'
        const told = { type: 'burst-unusable', rule: 'saved', tiers: ['gold'], problem }
        expect(events).toEqual([{ ...told, version: 0 }])
        const request = { resource: '/x', user: 'u', tier: 'gold' }
        expect(await admitted(60, request)).toBe(50)
        const changeOf = async (resource: string): Promise<string | undefined> => {
          const { rules } = await engine.explain({ ...request, resource })
          return rules[0]?.steps.at(-1)?.change
        }
        expect(await changeOf('/x')).toBe(`10 times for gold, without the 7 more at once: ${problem}`)
        expect(await changeOf('/plain')).toBe('10 times and 7 more at once for gold')
        expect(events).toHaveLength(1)
        engine.use({ enforced: { number: 3, ruleSet } })
        expect(events.slice(1)).toEqual([{ ...told, version: 3 }])
      })
    })

    it('names the rule that stands in the place of another', async () => {
      const ruleSet: RuleSet = {
        rules: [
          { ...RULE, name: 'beside', resource: '/orders/17', always: true },
          { ...RULE, name: 'watched', resource: '/orders/17', shadow: true },
          { ...RULE, name: 'order', resource: '/orders/:id' },
          { ...RULE, name: 'below', resource: '/orders/*' },
        ],
        tiers: [{ name: 'gold', rules: [{ ...RULE, name: 'own', resource: '*', percent: 50 }] }],
      }
      await withPolicy(harness, ruleSet, async ({ engine }) => {
        const whys = async (user: string, tier?: string): Promise<unknown> => {
          const { rules } = await engine.explain({ resource: '/orders/17', user, ...(tier && { tier }) })
          return Object.fromEntries(rules.map(({ rule, fate, why }) => [rule, `${fate}: ${why}`]))
        }
        const matches = 'matches, any method'
        const general = {
          beside: `applies: /orders/17 ${matches}`,
          watched: 'shadow: the rule is in shadow',
          order: `applies: /orders/:id ${matches}`,
          below: 'replaced: "order" is more specific for the same dimension',
        }
        expect(await whys('u')).toEqual(general)
        const found = new Set<unknown>()
        for (let user = 0; user < 20; user++) found.add(JSON.stringify(await whys(`user-${user}`, 'gold')))
        const own = 'tier:gold:own'
        const comesFirst = 'is a rule of the tier for the same dimension, and comes before those for all'
        const because = `replaced: "${own}" ${comesFirst}`
        const replaced = `${because}, and the caller is in its 50 %`
        const applies = `applies: * ${matches}`
        const inShare = { beside: general.beside, [own]: applies, watched: replaced, order: replaced, below: replaced }
        const others = { ...general, [own]: 'shadow: the caller is not in the 50 %' }
        expect([...found].map((text) => JSON.parse(String(text)))).toEqual(expect.arrayContaining([inShare, others]))
        expect(found.size).toBe(2)
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
}
