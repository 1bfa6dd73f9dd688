import { joinKey } from '@sluice/core'
import type { PolicyRequest, PolicyReservation, RuleSet } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import type { StoreHarness } from '../store/store-fixture.ts'
import { withPolicy } from './policy-fixture.ts'

const BASE: RuleSet = {
  rules: [{ name: 'base', resource: '*', dimension: 'user', limit: 2, window: '1m' }],
  exemptions: [
    { name: 'health', match: { resource: '/health' } },
    { name: 'office', match: { cidrs: ['10.0.0.0/8', '2001:db8::/32'] } },
    { name: 'staff', match: { dimension: 'user', entities: ['root', 'ops'] } },
    {
      name: 'services',
      match: { services: ['billing'] },
      rules: [{ name: 'billing', resource: '*', dimension: 'global', limit: 3, window: '1m' }],
    },
  ],
  denyList: [
    { name: 'abuse', match: { dimension: 'user', entities: ['mallory'] } },
    { name: 'bad-net', match: { cidrs: ['203.0.113.0/24'] } },
  ],
}

/** Deny list, blocks, exemptions, reservations, shadow and roll-out. */
export function exemptionTests(harness: StoreHarness): void {
  describe('exemptions and deny list', () => {
    it('an exempt request is never counted', async () => {
      await withPolicy(harness, BASE, async ({ engine, admitted, check }) => {
        expect(await admitted(5, { resource: '/health', user: 'u' })).toBe(5)
        expect(await admitted(5, { resource: '/x', user: 'u', ip: '10.1.2.3' })).toBe(5)
        expect(await admitted(5, { resource: '/x', user: 'u', ip: '::ffff:10.1.2.3' })).toBe(5)
        expect(await admitted(5, { resource: '/x', user: 'ops' })).toBe(5)
        expect(await check({ resource: '/HEALTH/', user: 'u' })).toMatchObject({ reason: 'exempt', rule: 'health' })
        expect((await engine.usage({ user: 'u' }))[0]?.counters[0]?.used).toBe(0)
      })
    })

    it('internal services have limits of their own', async () => {
      await withPolicy(harness, BASE, async ({ admitted, check }) => {
        expect(await admitted(5, { resource: '/x', user: 'u', service: 'billing' })).toBe(3)
        expect(await check({ resource: '/x', user: 'u', service: 'billing' })).toMatchObject({ dimension: 'global' })
        expect(await admitted(3, { resource: '/x', user: 'u', service: 'unknown' })).toBe(2)
      })
    })

    it('services are counted one by one where a rule counts by service', async () => {
      const rule = { name: 'each', resource: '*', dimension: 'service', limit: 3, window: '1m' } as const
      const ruleSet: RuleSet = {
        rules: [{ resource: '*', dimension: 'user', limit: 1, window: '1m' }],
        exemptions: [{ name: 'internal', match: { services: ['billing', 'search'] }, rules: [rule] }],
      }
      await withPolicy(harness, ruleSet, async ({ admitted, engine }) => {
        const billing = { resource: '/x', user: 'u', service: 'billing' }
        expect(await admitted(5, billing)).toBe(3)
        expect(await admitted(5, { ...billing, service: 'search' })).toBe(3)
        const { rules, decision } = await engine.explain(billing)
        expect(decision).toMatchObject({ allowed: false, reason: 'limit', dimension: 'service' })
        expect(rules).toMatchObject([{ fate: 'applies', entity: 'billing', counters: [{ used: 3 }] }])
        expect(await engine.usage({ service: 'billing' })).toMatchObject([
          { dimension: 'service', entity: 'billing', counters: [{ used: 3 }] },
        ])
        await engine.reset({ service: 'billing' })
        expect(await admitted(5, billing)).toBe(3)
      })
    })

    it('a service is who its field names, or a descriptor where there is no field; it can be blocked', async () => {
      const ruleSet: RuleSet = { rules: [{ resource: '*', dimension: 'service', limit: 2, window: '1m' }] }
      await withPolicy(harness, ruleSet, async ({ admitted, engine }) => {
        expect(await admitted(1, { resource: '/x', service: 'billing', descriptors: { service: 'search' } })).toBe(1)
        expect(await admitted(3, { resource: '/x', descriptors: { service: 'billing' } })).toBe(1)
        expect(await admitted(3, { resource: '/x', service: 'search' })).toBe(2)
        engine.use({ enforced: { number: 2, ruleSet: { rules: [] } } })
        engine.block('service', 'cron', { duration: '1m' })
        expect(await admitted(2, { resource: '/x', service: 'cron' })).toBe(0)
        expect(await admitted(2, { resource: '/x', service: 'other' })).toBe(2)
      })
    })

    it('requests that no enforced rule matches are reported, and no others', async () => {
      const rule = { resource: '/x', dimension: 'user', limit: 5, window: '1m' } as const
      const ruleSet: RuleSet = {
        rules: [rule, { ...rule, resource: '/watched', shadow: true }, { ...rule, resource: '/off', limit: 'off' }],
        exemptions: [
          { name: 'health', match: { resource: '/health' } },
          { name: 'internal', match: { services: ['billing'] }, rules: [rule] },
        ],
        denyList: [{ name: 'bad', match: { dimension: 'user', entities: ['mallory'] } }],
      }
      await withPolicy(harness, ruleSet, async ({ engine, events, check }) => {
        const matched: PolicyRequest[] = [
          { resource: '/x', user: 'u' },
          { resource: '/off', user: 'u' },
          { resource: '/health' },
          { resource: '/elsewhere', user: 'mallory' },
        ]
        for (const request of matched) await check(request)
        const unmatched: PolicyRequest[] = [
          { resource: '/elsewhere', user: 'u' },
          { resource: '/x', ip: '192.0.2.1' },
          { resource: '/watched', user: 'u' },
          { resource: '/elsewhere', user: 'u', service: 'billing' },
        ]
        for (const request of unmatched) expect((await check(request)).reason).toBe('unlimited')
        await engine.reserve(unmatched[0]!)
        // These only look.
        await engine.peek(unmatched[0]!)
        await engine.explain(unmatched[0]!)
        const told = events.flatMap((event) => (event.type === 'unmatched' ? [event.request] : []))
        expect(told).toEqual([...unmatched, unmatched[0]])
      })
    })

    it('the deny list comes before exemptions', async () => {
      await withPolicy(harness, BASE, async ({ check }) => {
        const denied = { allowed: false, reason: 'denied', retryAfterMs: Number.POSITIVE_INFINITY }
        expect(await check({ resource: '/health', user: 'mallory' })).toMatchObject({ ...denied, rule: 'abuse' })
        expect(await check({ resource: '/x', ip: '203.0.113.9' })).toMatchObject({ ...denied, rule: 'bad-net' })
      })
    })

    it('an entry of the deny list ends', async () => {
      await withPolicy(harness, { rules: [] }, async ({ engine, clock, check, advance }) => {
        const expiresAt = clock.nowMicros() / 1000 + 5000
        const denyList = [{ name: 'for-now', match: { dimension: 'user', entities: ['u'] }, expiresAt }]
        engine.use({ enforced: { number: 1, ruleSet: { rules: [], denyList } } })
        expect(await check({ resource: '/x', user: 'u' })).toMatchObject({ allowed: false, retryAfterMs: 5000 })
        await advance(5000)
        expect(await check({ resource: '/x', user: 'u' })).toMatchObject({ allowed: true })
      })
    })
  })

  describe('blocks', () => {
    it('a blocked caller is denied everywhere until the block ends or is lifted', async () => {
      await withPolicy(harness, BASE, async ({ engine, check, advance }) => {
        const block = engine.block('user', 'u', { duration: '10s', reason: 'asked to' })
        expect(block).toMatchObject({ entity: 'u', reason: 'asked to' })
        const denied = { allowed: false, reason: 'blocked', dimension: 'user', retryAfterMs: 10_000 }
        expect(await check({ resource: '/health', user: 'u' })).toMatchObject(denied)
        expect(await check({ resource: '/x', user: 'v' })).toMatchObject({ allowed: true })
        await engine.unblock('user', 'u')
        expect(await check({ resource: '/x', user: 'u' })).toMatchObject({ allowed: true })
        engine.block('user', 'u', { duration: '10s' })
        await advance(9999)
        expect(await check({ resource: '/x', user: 'u' })).toMatchObject({ allowed: false, retryAfterMs: 1 })
        await advance(1)
        expect(await check({ resource: '/x', user: 'u' })).toMatchObject({ allowed: true })
      })
    })

    it('a combination is blocked, however its names are ordered', async () => {
      const rules = [{ resource: '*', dimension: 'user+tenant', limit: 9, window: '1m' }] as const
      await withPolicy(harness, { rules }, async ({ engine, check }) => {
        const request = { resource: '/x', tenant: 't', user: 'u' }
        engine.block('user+tenant', joinKey(['t', 'u']), { duration: '1m' })
        expect(await check(request)).toMatchObject({ reason: 'blocked', dimension: 'tenant+user' })
        expect(await check({ ...request, user: 'v' })).toMatchObject({ allowed: true })
        await engine.unblock('tenant+user', joinKey(['t', 'u']))
        expect(await check(request)).toMatchObject({ allowed: true })
      })
    })

    it('an address is blocked in all its spellings', async () => {
      await withPolicy(harness, BASE, async ({ engine, check }) => {
        engine.block('ip', '2001:db8:0:1::5', { duration: '1m' })
        expect(await check({ resource: '/x', ip: '2001:DB8::1:0:0:0:9' })).toMatchObject({ reason: 'blocked' })
      })
    })
  })

  describe('reservations', () => {
    it('are settled at the real cost under every limit, with the weight of each', async () => {
      const ruleSet: RuleSet = {
        rules: [
          { name: 'tokens', resource: '*', dimension: 'user', limit: 100, window: '1m' },
          { name: 'money', resource: '*', dimension: 'tenant', cost: 2, limit: 100, window: '1m' },
          { name: 'slots', resource: '*', dimension: 'global', algorithm: 'concurrency', limit: 1, lease: '1m' },
        ],
      }
      await withPolicy(harness, ruleSet, async ({ engine, check }) => {
        const request = { resource: '/chat', user: 'u', tenant: 't' }
        const reservation = (await engine.reserve({ ...request, cost: 1 })) as PolicyReservation
        expect(reservation.allowed).toBe(true)
        expect(await check(request)).toMatchObject({ allowed: false, rule: 'slots' })
        await reservation.settle(30)
        const after = await engine.peek(request)
        expect(after.limits.map(({ remaining }) => remaining)).toEqual([70, 40, 1])
      })
    })

    it('can be settled from their claim alone, sent as text', async () => {
      await withPolicy(harness, BASE, async ({ engine, admitted }) => {
        const { claim } = (await engine.reserve({ resource: '/x', user: 'u', cost: 2 })) as PolicyReservation
        expect(await admitted(1, { resource: '/x', user: 'u' })).toBe(0)
        const sent = JSON.parse(JSON.stringify(claim)) as typeof claim
        expect(await engine.settle(sent, 1)).toMatchObject({ outcome: 'settled' })
        expect(await admitted(2, { resource: '/x', user: 'u' })).toBe(1)
      })
    })

    it('of slots are kept by their claim, and gone when their lease has ended', async () => {
      const rule = { resource: '*', dimension: 'user', algorithm: 'concurrency', limit: 1, lease: '10s' } as const
      await withPolicy(harness, { rules: [rule] }, async ({ engine, admitted, advance }) => {
        const request = { resource: '/x', user: 'u' }
        const { claim } = (await engine.reserve(request)) as PolicyReservation
        const sent = JSON.parse(JSON.stringify(claim)) as typeof claim
        await advance(9000)
        expect(await engine.renew(sent)).toMatchObject({ outcome: 'settled' })
        await advance(9000)
        expect(await admitted(1, request)).toBe(0)
        await advance(1000)
        expect(await engine.renew(sent)).toMatchObject({ outcome: 'gone' })
        expect(await admitted(2, request)).toBe(1)
      })
    })

    it('give back everything when they are released', async () => {
      await withPolicy(harness, BASE, async ({ engine, admitted }) => {
        const reservation = (await engine.reserve({ resource: '/x', user: 'u', cost: 2 })) as PolicyReservation
        expect(await admitted(1, { resource: '/x', user: 'u' })).toBe(0)
        await reservation.release()
        expect(await admitted(3, { resource: '/x', user: 'u' })).toBe(2)
      })
    })
  })

  describe('a default rule', () => {
    const rule = { resource: '/x', dimension: 'user', limit: 3, window: '1m' } as const
    const defaultRule = { limit: 2, window: '1m' } as const

    it('limits each caller that no enforced rule matches, by the first identity that it has', async () => {
      await withPolicy(harness, { ruleSet: { rules: [rule] }, defaultRule }, async ({ admitted, check, events }) => {
        expect(await admitted(5, { resource: '/x', user: 'u', ip: '192.0.2.1' })).toBe(3)
        const callers = [
          { user: 'u', tenant: 't' },
          { user: 'v', tenant: 't' },
          { apiKey: 'k', tenant: 't', ip: '192.0.2.1' },
          { tenant: 't', ip: '192.0.2.1' },
          { service: 's', ip: '192.0.2.1' },
          { ip: '192.0.2.1', descriptors: { plan: 'free' } },
          { descriptors: { plan: 'free' } },
        ]
        for (const caller of callers) expect(await admitted(5, { resource: '/y', ...caller })).toBe(2)
        // No identity: counted together.
        expect(await admitted(5, { resource: '/z' })).toBe(0)
        expect(await check({ resource: '/z', user: 'u' })).toMatchObject({ rule: 'default:user', dimension: 'user' })
        expect(events.filter(({ type }) => type === 'unmatched')).toHaveLength(callers.length * 5 + 6)
      })
    })

    it('covers requests with shadow rules or exemption rules only, and not those with a rule that is off', async () => {
      const ruleSet: RuleSet = {
        rules: [
          { ...rule, resource: '/watched', shadow: true },
          { ...rule, resource: '/off', limit: 'off' },
        ],
        exemptions: [
          { name: 'health', match: { resource: '/health' } },
          { name: 'internal', match: { services: ['billing'] }, rules: [rule] },
        ],
      }
      await withPolicy(harness, { ruleSet, defaultRule }, async ({ admitted }) => {
        expect(await admitted(5, { resource: '/watched', user: 'u1' })).toBe(2)
        expect(await admitted(5, { resource: '/y', user: 'u2', service: 'billing' })).toBe(2)
        expect(await admitted(5, { resource: '/x', user: 'u3', service: 'billing' })).toBe(3)
        expect(await admitted(5, { resource: '/off', user: 'u4' })).toBe(5)
        expect(await admitted(5, { resource: '/health', user: 'u5' })).toBe(5)
      })
    })

    it('is explained, listed in usage and reset, and takes overrides, tiers and incidents', async () => {
      const ruleSet: RuleSet = { rules: [rule], tiers: [{ name: 'gold', multiplier: 10 }], incident: 0.5 }
      await withPolicy(harness, { ruleSet, defaultRule }, async ({ engine, admitted }) => {
        const request = { resource: '/y', user: 'u' }
        expect(await admitted(2, request)).toBe(2)
        const { rules } = await engine.explain(request)
        expect(rules.map(({ rule: name, fate, why }) => [name, fate, why])).toEqual([
          ['default:user', 'applies', 'no rule matches, so the default holds'],
          ['/x@user', 'no-match', expect.any(String)],
        ])
        expect((await engine.explain({ resource: '/x', user: 'u' })).rules.map(({ rule: name }) => name)).toEqual([
          '/x@user',
        ])
        const used = [{ rule: 'default:user', entity: 'u', counters: [{ used: 2 }] }]
        expect(await engine.usage(request)).toMatchObject(used)
        expect(await engine.usage({ user: 'u' })).toMatchObject([{ rule: '/x@user' }, ...used])
        await engine.reset({ user: 'u' })
        expect(await admitted(5, { ...request, tier: 'gold' })).toBe(5)
        engine.entries.putOverride({ dimension: 'user', entity: 'v', resource: '*', terms: { limit: 4 } })
        expect(await admitted(9, { resource: '/y', user: 'v' })).toBe(4)
        engine.entries.setIncident({ active: true })
        expect(await admitted(5, { resource: '/y', user: 'w' })).toBe(1)
      })
    })

    it('of a version that is only measured counts apart', async () => {
      await withPolicy(harness, { defaultRule }, async ({ engine, admitted, settled }) => {
        engine.use({
          enforced: { number: 1, ruleSet: { rules: [] } },
          candidate: { number: 2, ruleSet: { rules: [] }, stage: 'shadow', percent: 0 },
        })
        expect(await admitted(5, { resource: '/y', user: 'u' })).toBe(2)
        await settled()
      })
    })
  })

  describe('addresses that penalties never block', () => {
    const penalty = { after: 3, within: '1m', block: '1m' } as const
    const BY_IP: RuleSet = { rules: [{ resource: '*', dimension: 'ip', limit: 1, window: '1m', penalty }] }
    const neverBlock = ['198.51.100.0/24', '2001:db8::7']

    it.each([
      ['192.0.2.1', true],
      ['2001:db8:0:1::1', true],
      ['127.0.0.1', false],
      ['127.9.9.9', false],
      ['::1', false],
      ['::ffff:127.0.0.1', false],
      ['198.51.100.77', false],
      ['2001:db8::7', false],
      // Counted together with the proxy, so a block would hold for both.
      ['2001:db8::8', false],
    ])('%s is blocked: %s', async (ip, isBlocked) => {
      await withPolicy(harness, { ruleSet: BY_IP, neverBlock }, async ({ engine, admitted, settled }) => {
        expect(await admitted(9, { resource: '/x', ip })).toBe(1)
        await settled()
        expect(engine.entries.blocks()).toHaveLength(isBlocked ? 1 : 0)
      })
    })

    it('are blocked by an explicit block, and their users where a rule counts users', async () => {
      const byUser = { rules: [{ resource: '*', dimension: 'user', limit: 1, window: '1m', penalty }] } as const
      await withPolicy(harness, byUser, async ({ engine, admitted, settled }) => {
        expect(await admitted(9, { resource: '/x', ip: '127.0.0.1', user: 'u' })).toBe(1)
        await settled()
        expect(engine.entries.blocks()).toMatchObject([{ dimension: 'user', entity: 'u' }])
        engine.block('ip', '127.0.0.1', { duration: '1m' })
        expect(await admitted(1, { resource: '/x', ip: '127.0.0.1', user: 'v' })).toBe(0)
      })
    })

    it('are rejected where they cannot be read', () => {
      const fixture = withPolicy(harness, { neverBlock: ['10.0.0.1/8'] }, () => undefined)
      return expect(fixture).rejects.toThrow('write 10.0.0.0/8')
    })
  })
}
