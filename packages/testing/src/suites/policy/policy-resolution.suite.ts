import type { RuleSet } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import type { StoreHarness } from '../store/store-fixture.ts'
import { withPolicy } from './policy-fixture.ts'

const LAYERS: RuleSet = {
  rules: [
    { name: 'default', resource: '*', dimension: 'user', limit: 2, window: '1m' },
    { name: 'orders', resource: '/orders', dimension: 'user', limit: 4, window: '1m' },
    { name: 'orders-post', resource: '/orders', methods: ['POST'], dimension: 'user', limit: 3, window: '1m' },
    { name: 'order', resource: '/orders/:id', dimension: 'user', limit: 5, window: '1m' },
    { name: 'files', resource: '/files/*', dimension: 'user', limit: 6, window: '1m' },
  ],
  tiers: [
    { name: 'premium', multiplier: 10 },
    {
      name: 'partner',
      multiplier: 100,
      rules: [{ name: 'partner-orders', resource: '/orders', dimension: 'user', limit: 7, window: '1m' }],
    },
  ],
}

/** How rules are found and their limits resolved. */
export function resolutionTests(harness: StoreHarness): void {
  describe('resolution', () => {
    it('goes by the most specific rule of a dimension', async () => {
      await withPolicy(harness, LAYERS, async ({ check }) => {
        const limitOf = async (resource: string, method?: string): Promise<string> => {
          const { rule, limit } = await check({ resource, user: `u ${resource}`, ...(method && { method }) })
          return `${rule} ${limit}`
        }
        expect(await limitOf('/')).toBe('default 2')
        expect(await limitOf('/orders', 'GET')).toBe('orders 4')
        expect(await limitOf('/orders', 'POST')).toBe('orders-post 3')
        expect(await limitOf('/orders/17', 'POST')).toBe('order 5')
        expect(await limitOf('/files/a/b')).toBe('files 6')
      })
    })

    it('leaves no way past a rule by an empty segment in the place of a parameter', async () => {
      const rule = { dimension: 'user', window: '1m' } as const
      const ruleSet: RuleSet = {
        rules: [
          { ...rule, name: 'order', resource: '/orders/:id', limit: 1 },
          { ...rule, name: 'reports', resource: '/:tenant/reports', limit: 1 },
          { ...rule, name: 'list', resource: '/lists', limit: 2 },
        ],
        tiers: [{ name: 'partner', rules: [{ ...rule, name: 'partner-list', resource: '/lists/:id', limit: 9 }] }],
      }
      await withPolicy(harness, ruleSet, async ({ admitted }) => {
        expect(await admitted(3, { resource: '/orders/', method: 'GET', user: 'u' })).toBe(1)
        expect(await admitted(3, { resource: '//reports', method: 'GET', user: 'u' })).toBe(1)
        // A rule of the tier for what comes after the slash does not take the place of the rule for the path itself.
        expect(await admitted(9, { resource: '/lists/', method: 'GET', user: 'u', tier: 'partner' })).toBe(2)
      })
    })

    it('holds a request that does not say its method to the rules of every method', async () => {
      const rule = { resource: '/orders', dimension: 'user', window: '1m' } as const
      const ruleSet: RuleSet = {
        rules: [
          { ...rule, name: 'get', methods: ['GET'], limit: 5 },
          { ...rule, name: 'post', methods: ['POST'], limit: 2 },
          { ...rule, name: 'any', limit: 4 },
        ],
      }
      await withPolicy(harness, ruleSet, async ({ admitted }) => {
        expect(await admitted(9, { resource: '/orders', method: 'GET', user: 'u1' })).toBe(5)
        expect(await admitted(9, { resource: '/orders', user: 'u2' })).toBe(2)
        expect(await admitted(9, { resource: '/orders', method: 'DELETE', user: 'u2' })).toBe(2)
      })
    })

    it('counts all resources of a rule together, and rules apart', async () => {
      await withPolicy(harness, LAYERS, async ({ admitted }) => {
        expect(await admitted(3, { resource: '/orders/1', user: 'u' })).toBe(3)
        expect(await admitted(3, { resource: '/orders/2', user: 'u' })).toBe(2)
        expect(await admitted(5, { resource: '/orders', user: 'u', method: 'GET' })).toBe(4)
        expect(await admitted(3, { resource: '/elsewhere', user: 'u' })).toBe(2)
        expect(await admitted(1, { resource: '/orders/2', user: 'other' })).toBe(1)
      })
    })

    it('takes a tier from the request or from a membership, and its rules before those for all', async () => {
      await withPolicy(harness, LAYERS, async ({ engine, check }) => {
        expect(await check({ resource: '/x', user: 'a', tier: 'premium' })).toMatchObject({ limit: 20, remaining: 19 })
        engine.entries.putMember({ dimension: 'user', entity: 'b', tier: 'premium' })
        expect(await check({ resource: '/x', user: 'b' })).toMatchObject({ limit: 20, rule: 'default' })
        expect(await check({ resource: '/orders', user: 'c', tier: 'partner', method: 'GET' })).toMatchObject({
          limit: 7,
          rule: 'tier:partner:partner-orders',
        })
        expect(await check({ resource: '/x', user: 'c', tier: 'partner' })).toMatchObject({ limit: 200 })
        expect(await check({ resource: '/x', user: 'd', tier: 'no such tier' })).toMatchObject({ limit: 2 })
        engine.entries.removeMember({ dimension: 'user', entity: 'b' })
        expect(await check({ resource: '/x', user: 'b' })).toMatchObject({ limit: 2 })
      })
    })

    it('puts an override before everything else, until it expires', async () => {
      await withPolicy(harness, LAYERS, async ({ engine, check, clock, advance }) => {
        const expiresAt = clock.nowMicros() / 1000 + 60_000
        const entry = { dimension: 'user', entity: 'vip', resource: '/orders', terms: { limit: 50 } } as const
        engine.entries.putOverride({ ...entry, expiresAt })
        const request = { resource: '/orders', user: 'vip', method: 'GET', tier: 'premium' } as const
        expect(await check(request)).toMatchObject({ limit: 50, remaining: 49 })
        expect(await check({ ...request, user: 'other' })).toMatchObject({ limit: 40 })
        await advance(60_000)
        expect(await check(request)).toMatchObject({ limit: 40 })
        engine.entries.putOverride({ ...entry, resource: '*', terms: { multiplier: 3 } })
        expect(await check(request)).toMatchObject({ limit: 12 })
        engine.entries.putOverride({ ...entry, terms: { limit: 'off' } })
        expect(await check(request)).toMatchObject({ reason: 'unlimited', limit: Number.POSITIVE_INFINITY })
      })
    })

    it('gives each caller the override of its own, however they take turns', async () => {
      await withPolicy(harness, LAYERS, async ({ engine, check }) => {
        const limits = { small: 10, middle: 20, large: 30 }
        for (const [entity, limit] of Object.entries(limits)) {
          engine.entries.putOverride({ dimension: 'user', entity, resource: '/orders', terms: { limit } })
        }
        for (const used of [1, 2]) {
          for (const [user, limit] of Object.entries(limits)) {
            const decision = await check({ resource: '/orders', user, method: 'GET' })
            expect(decision).toMatchObject({ limit, remaining: limit - used })
          }
          expect(await check({ resource: '/orders', user: 'other', method: 'GET' })).toMatchObject({ limit: 4 })
        }
      })
    })

    it('enforces every window of an override', async () => {
      await withPolicy(harness, LAYERS, async ({ engine, admitted, advance }) => {
        const windows = [
          { limit: 3, window: '1m' },
          { limit: 5, window: '1h' },
        ] as const
        engine.entries.putOverride({ dimension: 'user', entity: 'u', resource: '/orders', terms: { windows } })
        const request = { resource: '/orders', user: 'u', method: 'GET' }
        expect(await admitted(10, request)).toBe(3)
        await advance(60_000)
        expect(await admitted(10, request)).toBe(2)
      })
    })

    it('leaves the numbers of a rule that an override does not fit, and tells', async () => {
      const windows = [
        { limit: 5, window: '1m' },
        { limit: 3, window: '1h' },
      ] as const
      const rules: RuleSet = { rules: [{ name: 'both', resource: '*', dimension: 'user', windows }] }
      await withPolicy(harness, rules, async ({ engine, admitted, events }) => {
        engine.entries.putOverride({ dimension: 'user', entity: 'u', resource: '*', terms: { limit: 50 } })
        expect(await admitted(10, { resource: '/', user: 'u' })).toBe(3)
        expect(events).toContainEqual(expect.objectContaining({ type: 'override-unusable', rule: 'both' }))
      })
    })

    it('a raised limit helps on the next request, and counts what was used', async () => {
      await withPolicy(harness, LAYERS, async ({ engine, admitted, check }) => {
        const request = { resource: '/files/x', user: 'u' }
        expect(await admitted(10, request)).toBe(6)
        engine.entries.putOverride({ dimension: 'user', entity: 'u', resource: '/files/*', terms: { limit: 10 } })
        expect(await admitted(10, request)).toBe(4)
        const raised = LAYERS.rules.map((rule) => (rule.name === 'files' ? { ...rule, limit: 12 } : rule))
        engine.entries.removeOverride({ dimension: 'user', entity: 'u', resource: '/files/*' })
        engine.use({ enforced: { number: 2, ruleSet: { ...LAYERS, rules: raised } as RuleSet } })
        expect(await check(request)).toMatchObject({ allowed: true, version: 2, limit: 12, remaining: 1 })
        const without = LAYERS.rules.filter(({ name }) => name !== 'files')
        engine.use({ enforced: { number: 3, ruleSet: { ...LAYERS, rules: without } } })
        expect(await check(request)).toMatchObject({ allowed: true, rule: 'default' })
      })
    })

    it('does not apply a rule to a request without its dimension', async () => {
      await withPolicy(harness, LAYERS, async ({ check }) => {
        expect(await check({ resource: '/orders', ip: '10.0.0.1' })).toMatchObject({
          allowed: true,
          reason: 'unlimited',
        })
        expect(await check({ resource: '/orders', user: '' })).toMatchObject({ reason: 'unlimited' })
      })
    })

    it('knows descriptors and joint dimensions', async () => {
      const ruleSet: RuleSet = {
        rules: [
          { name: 'model', resource: '*', dimension: 'model', limit: 2, window: '1m' },
          { name: 'pair', resource: '*', dimension: 'tenant+user', limit: 1, window: '1m' },
        ],
      }
      await withPolicy(harness, ruleSet, async ({ check, admitted }) => {
        expect(await admitted(3, { resource: '/x', descriptors: { model: 'large' } })).toBe(2)
        expect(await admitted(1, { resource: '/x', descriptors: { model: 'small' } })).toBe(1)
        expect(await admitted(2, { resource: '/x', tenant: 'a', user: 'b' })).toBe(1)
        expect(await admitted(2, { resource: '/x', tenant: 'ab', user: '' })).toBe(2)
        expect(await check({ resource: '/x', tenant: 'a', user: 'b' })).toMatchObject({ dimension: 'tenant+user' })
      })
    })

    it('counts an IPv6 network as one caller, and an address in all its spellings', async () => {
      const ruleSet: RuleSet = { rules: [{ resource: '*', dimension: 'ip', limit: 2, window: '1m' }] }
      await withPolicy(harness, ruleSet, async ({ admitted, check }) => {
        expect(await admitted(1, { resource: '/', ip: '2001:db8:1:2::1' })).toBe(1)
        expect(await admitted(1, { resource: '/', ip: '2001:0DB8:0001:0002:ffff::9' })).toBe(1)
        expect(await admitted(1, { resource: '/', ip: '2001:db8:1:2:3::' })).toBe(0)
        expect(await admitted(1, { resource: '/', ip: '2001:db8:1:3::1' })).toBe(1)
        expect(await admitted(2, { resource: '/', ip: '192.0.2.1' })).toBe(2)
        expect(await check({ resource: '/', ip: '::ffff:192.0.2.1' })).toMatchObject({ allowed: false })
      })
    })

    it('an `always` rule holds besides a more specific one', async () => {
      const ruleSet: RuleSet = {
        rules: [
          { name: 'all', resource: '*', dimension: 'user', always: true, limit: 3, window: '1m' },
          { name: 'orders', resource: '/orders', dimension: 'user', limit: 2, window: '1m' },
        ],
      }
      await withPolicy(harness, ruleSet, async ({ admitted, check }) => {
        expect(await admitted(3, { resource: '/orders', user: 'u' })).toBe(2)
        expect(await admitted(3, { resource: '/other', user: 'u' })).toBe(1)
        expect(await check({ resource: '/other', user: 'u' })).toMatchObject({ rule: 'all' })
      })
    })
  })

  describe('a rule that callers are not told of', () => {
    const hidden = { name: 'hidden', resource: '*', dimension: 'ip', limit: 3, window: '1m', announce: false } as const
    const told = { name: 'told', resource: '*', dimension: 'user', limit: 100, window: '1m', cost: 2 } as const
    const request = { resource: '/x', ip: '192.0.2.7' }

    it('decides, and the numbers of an allowed request are those of the others', async () => {
      await withPolicy(harness, { rules: [hidden, told] }, async ({ check, engine }) => {
        const allowed = await check({ ...request, user: 'u' })
        expect(allowed).toMatchObject({ rule: 'told', limit: 100, remaining: 98, cost: 2, announce: undefined })
        expect(allowed.limits.map(({ rule, announce }) => [rule, announce])).toEqual([
          ['hidden', false],
          ['told', undefined],
        ])
        for (let call = 0; call < 2; call++) await check({ ...request, user: 'u' })
        const denied = await check({ ...request, user: 'u' })
        expect(denied).toMatchObject({ allowed: false, rule: 'hidden', retryAfterMs: 20_000, announce: false })
        await engine.refund(allowed)
        expect(await check({ ...request, user: 'u' })).toMatchObject({ allowed: true, rule: 'told', remaining: 94 })
      })
    })

    it('speaks for a request that no other rule holds for, and for a reservation like for a check', async () => {
      await withPolicy(harness, { rules: [hidden, told] }, async ({ check, engine }) => {
        expect(await check(request)).toMatchObject({ rule: 'hidden', remaining: 2, announce: false })
        const reserved = await engine.reserve({ ...request, user: 'u' })
        expect('claim' in reserved && reserved.decision).toMatchObject({ rule: 'told', remaining: 98 })
      })
    })
  })

  describe('one decision over all dimensions', () => {
    const ruleSet: RuleSet = {
      rules: [
        { name: 'by-ip', resource: '*', dimension: 'ip', limit: 100, window: '1s' },
        { name: 'by-user', resource: '*', dimension: 'user', limit: 5, window: '1m' },
        { name: 'by-tenant', resource: '*', dimension: 'tenant', limit: 8, window: '1h' },
        { name: 'by-all', resource: '*', dimension: 'global', limit: 20, window: '1m' },
      ],
    }

    it('user, tenant and global together: a denial by one takes nothing from the others', async () => {
      await withPolicy(harness, ruleSet, async ({ engine, admitted, check }) => {
        const request = { resource: '/x', ip: '192.0.2.7', tenant: 't' }
        expect(await admitted(6, { ...request, user: 'a' })).toBe(5)
        const denied = await check({ ...request, user: 'a' })
        expect(denied).toMatchObject({ allowed: false, rule: 'by-user', dimension: 'user', reason: 'limit', cost: 0 })
        expect(denied.limits.map(({ dimension, remaining }) => [dimension, remaining])).toEqual([
          ['ip', 95],
          ['user', 0],
          ['tenant', 3],
          ['global', 15],
        ])
        expect(await admitted(5, { ...request, user: 'b' })).toBe(3)
        expect(await check({ ...request, user: 'b' })).toMatchObject({ dimension: 'tenant', limit: 8 })
        const usage = await engine.usage({ user: 'b', tenant: 't', ip: '192.0.2.7' })
        expect(usage.map(({ dimension, counters }) => [dimension, counters[0]?.used])).toEqual([
          ['ip', 8],
          ['user', 3],
          ['tenant', 8],
        ])
      })
    })

    it('the least remaining speaks for an allowed request', async () => {
      await withPolicy(harness, ruleSet, async ({ check }) => {
        const decision = await check({ resource: '/x', ip: '192.0.2.7', user: 'a', tenant: 't' })
        expect(decision).toMatchObject({ allowed: true, rule: 'by-user', dimension: 'user', limit: 5, remaining: 4 })
        expect(decision.limits).toHaveLength(4)
      })
    })

    it('every limit says what its number means', async () => {
      const rules: RuleSet['rules'] = [
        { resource: '*', dimension: 'user', limit: 5, window: '1m' },
        { resource: '*', dimension: 'tenant', algorithm: 'concurrency', limit: 1, lease: '30s' },
      ]
      await withPolicy(harness, { rules }, async ({ check }) => {
        const { limits } = await check({ resource: '/x', user: 'a', tenant: 't' })
        expect(limits.map(({ windowMs, quotaUnit }) => [windowMs, quotaUnit])).toEqual([
          [60_000, 'requests'],
          [30_000, 'concurrent-requests'],
        ])
        const [only] = (await check({ resource: '/x', user: 'b' })).limits
        expect(only).toMatchObject({ windowMs: 60_000, quotaUnit: 'requests' })
      })
    })

    it('a refund gives back under every limit', async () => {
      await withPolicy(harness, ruleSet, async ({ engine, check }) => {
        const request = { resource: '/x', user: 'a', tenant: 't', cost: 4 }
        const decision = await check(request)
        await engine.refund(decision)
        const after = await engine.peek({ ...request, cost: 1 })
        expect(after.limits.map(({ remaining }) => remaining)).toEqual([5, 8, 20])
        const copy = structuredClone({ ...(await check(request)) })
        const refund = async (): Promise<unknown> => await engine.refund(copy)
        await expect(refund()).rejects.toMatchObject({ code: 'SLUICE_INVALID_OPTION' })
        expect(await engine.refund({ ...after })).toEqual({ outcome: 'settled', corrected: 0 })
      })
    })

    it('several windows of a rule are decided together', async () => {
      const windows = [
        { limit: 2, window: '1s' },
        { limit: 3, window: '1m' },
      ] as const
      const set: RuleSet = {
        rules: [{ name: 'w', resource: '*', dimension: 'user', algorithm: 'fixed-window', windows }],
      }
      await withPolicy(harness, set, async ({ admitted, advance }) => {
        expect(await admitted(4, { resource: '/x', user: 'u' })).toBe(2)
        await advance(1000)
        expect(await admitted(4, { resource: '/x', user: 'u' })).toBe(1)
      })
    })

    it('a rule may cost more than another', async () => {
      const set: RuleSet = {
        rules: [
          { name: 'calls', resource: '*', dimension: 'user', limit: 10, window: '1m' },
          { name: 'heavy', resource: '*', dimension: 'tenant', cost: 5, limit: 20, window: '1m' },
          {
            name: 'bytes',
            resource: '*',
            dimension: 'apiKey',
            cost: { descriptor: 'bytes', per: 1024 },
            limit: 8,
            window: '1m',
          },
          { name: 'named', resource: '*', dimension: 'global', cost: { function: 'double' }, limit: 100, window: '1m' },
        ],
      }
      const costFunctions = { double: () => 2 }
      await withPolicy(harness, { ruleSet: set, costFunctions }, async ({ check }) => {
        const identity = { user: 'u', tenant: 't', apiKey: 'k' }
        const decision = await check({ resource: '/x', ...identity, descriptors: { bytes: 2049 }, cost: 2 })
        expect(decision.limits.map(({ limit, remaining }) => limit - remaining!)).toEqual([2, 10, 6, 4])
        const huge = await check({ resource: '/x', ...identity, descriptors: { bytes: 1e300 } })
        expect(huge).toMatchObject({ allowed: false, rule: 'bytes', reason: 'never' })
      })
    })
  })
}
