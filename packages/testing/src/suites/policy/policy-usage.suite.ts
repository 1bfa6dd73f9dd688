import type { AlgorithmRule } from '@sluice/core/internal'
import type { Caller, CounterReport, PolicyEngine, RuleSet } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import type { StoreHarness } from '../store/store-fixture.ts'
import { withPolicy } from './policy-fixture.ts'

const RULE = { dimension: 'user', limit: 10, window: '1m' } as const

const RULES: RuleSet = {
  rules: [
    { ...RULE, name: 'default', resource: '*' },
    { ...RULE, name: 'orders', resource: '/orders/:id' },
    { ...RULE, name: 'orders-delete', resource: '/orders/:id', methods: ['DELETE'] },
    { ...RULE, name: 'users', resource: '/users' },
    { ...RULE, name: 'old', resource: '/old', enabled: false },
    { ...RULE, name: 'by-key', resource: '*', dimension: 'apiKey' },
    { ...RULE, name: 'all', resource: '*', dimension: 'global' },
  ],
}

/** Every algorithm, without and with the burst that it can have. */
const ALGORITHMS: readonly [string, AlgorithmRule][] = [
  ['gcra', { limit: 20, window: '1m' }],
  ['gcra with a small burst', { limit: 20, window: '1m', burst: 8 }],
  ['gcra with a large burst', { limit: 20, window: '1m', burst: 40 }],
  [
    'gcra over two windows',
    {
      windows: [
        { limit: 20, window: '1m', burst: 8 },
        { limit: 200, window: '1h' },
      ],
    },
  ],
  ['fixed-window', { algorithm: 'fixed-window', limit: 20, window: '1m' }],
  ['fixed-window with a burst', { algorithm: 'fixed-window', limit: 20, window: '1m', burst: 30 }],
  ['fixed-window with rollover', { algorithm: 'fixed-window', limit: 20, window: '1m', rollover: true }],
  ['fixed-window by the calendar', { algorithm: 'fixed-window', limit: 20, window: { calendar: 'day' } }],
  ['sliding-window-counter', { algorithm: 'sliding-window-counter', limit: 20, window: '1m' }],
  ['sliding-window-counter with a burst', { algorithm: 'sliding-window-counter', limit: 20, window: '1m', burst: 30 }],
  ['sliding-window-log', { algorithm: 'sliding-window-log', limit: 20, window: '1m' }],
  ['sliding-window-log with a burst', { algorithm: 'sliding-window-log', limit: 20, window: '1m', burst: 30 }],
  ['sliding-window-log in segments', { algorithm: 'sliding-window-log', limit: 20, window: '1m', segments: 6 }],
  ['token-bucket', { algorithm: 'token-bucket', capacity: 20, refillPerSecond: 1 }],
  ['leaky-bucket-meter', { algorithm: 'leaky-bucket-meter', capacity: 20, leakPerSecond: 1 }],
  ['leaky-bucket-queue', { algorithm: 'leaky-bucket-queue', capacity: 20, ratePerSecond: 1 }],
  ['hybrid', { algorithm: 'hybrid', limit: 20, window: '1m', burst: { capacity: 20, refillPerSecond: 1 } }],
  ['concurrency', { algorithm: 'concurrency', limit: 20, lease: '30s' }],
]

/** What was used, and how it is forgotten. */
export function usageTests(harness: StoreHarness): void {
  describe('usage and reset', () => {
    it('show every counter of a caller, and forget them', async () => {
      await withPolicy(harness, RULES, async ({ engine, check }) => {
        await check({ resource: '/users', user: 'u' })
        await check({ resource: '/elsewhere', user: 'u', cost: 3 })
        const used = (resource?: string): Promise<unknown> =>
          usedBy(engine, { user: 'u', ...(resource === undefined ? {} : { resource }) })
        expect(await used()).toEqual({ default: 3, orders: 0, 'orders-delete': 0, users: 1 })
        expect(await used('/users')).toEqual({ users: 1, all: 4 })
        await engine.reset({ user: 'u', resource: '/users' })
        expect(await used()).toEqual({ default: 3, orders: 0, 'orders-delete': 0, users: 0 })
        await engine.reset({ user: 'u' })
        expect(await used()).toEqual({ default: 0, orders: 0, 'orders-delete': 0, users: 0 })
        expect(await used('/users')).toEqual({ users: 0, all: 0 })
      })
    })

    it.each(ALGORITHMS)('begin at nothing and count every unit: %s', async (_name, algorithm) => {
      const ruleSet: RuleSet = {
        rules: [{ ...algorithm, name: 'one', resource: '*', dimension: 'user' }],
        tiers: [
          { name: 'gold', multiplier: 4, burst: 7, entitled: true },
          { name: 'bronze', multiplier: 0.5 },
        ],
      }
      await withPolicy(harness, ruleSet, async ({ engine, check }) => {
        for (const tier of [undefined, 'gold', 'bronze']) {
          const request = { resource: '/x', user: `of ${tier}`, ...(tier && { tier }) }
          const counters = async (): Promise<readonly Pick<CounterReport, 'used' | 'remaining'>[]> => {
            const [usage] = await engine.usage(request)
            const explained = await engine.explain(request)
            expect(explained.rules[0]?.counters).toEqual(usage?.counters)
            return usage!.counters
          }
          const fresh = await counters()
          expect(fresh.map(({ used }) => used)).toEqual(fresh.map(() => 0))
          for (let call = 0; call < 3; call++) expect(await check(request)).toMatchObject({ allowed: true })
          const left = fresh.map(({ remaining }) => ({ used: 3, remaining: remaining! - 3 }))
          expect(await counters()).toMatchObject(left)
        }
      })
    })

    it('count what was used of units that were carried over', async () => {
      const rules = [{ ...RULE, name: 'saved', resource: '*', algorithm: 'fixed-window', rollover: true }] as const
      await withPolicy(harness, { rules }, async ({ engine, check, advance }) => {
        const request = { resource: '/x', user: 'u' }
        const counter = async (): Promise<unknown> => (await engine.usage(request))[0]?.counters[0]
        await check({ ...request, cost: 4 })
        expect(await counter()).toMatchObject({ limit: 10, used: 4, remaining: 6 })
        await advance(60_000)
        expect(await counter()).toMatchObject({ limit: 10, used: 0, remaining: 16 })
        await check({ ...request, cost: 5 })
        expect(await counter()).toMatchObject({ limit: 10, used: 5, remaining: 11 })
      })
    })

    it('know the rules of exemptions', async () => {
      const match = { services: ['billing'] }
      const ruleSet: RuleSet = {
        rules: [{ ...RULE, name: 'base', resource: '*' }],
        exemptions: [
          { name: 'free', match: { resource: '/health' } },
          { name: 'admin', match: { ...match, resource: '/admin/*' }, rules: [{ ...RULE, name: 'a', resource: '*' }] },
          {
            name: 'internal',
            match,
            rules: [
              { ...RULE, name: 'i', resource: '*', limit: 3 },
              { ...RULE, name: 'all', resource: '*', dimension: 'global' },
            ],
          },
          { name: 'office', match: { cidrs: ['10.0.0.0/8'] }, rules: [{ ...RULE, name: 'o', resource: '*' }] },
          { name: 'files', match: { resource: '/files/*' }, rules: [{ ...RULE, name: 'f', resource: '*' }] },
        ],
      }
      await withPolicy(harness, ruleSet, async ({ engine, check, admitted }) => {
        const user = { user: 'u' }
        const service = { ...user, service: 'billing' }
        expect(await admitted(9, { ...service, resource: '/x' })).toBe(3)
        expect(await usedBy(engine, { ...service, resource: '/x' })).toEqual({
          'exemption:internal:i': 3,
          'exemption:internal:all': 3,
        })
        expect(await usedBy(engine, { ...user, resource: '/x' })).toEqual({ base: 0 })
        expect(await usedBy(engine, { ...user, resource: '/health' })).toEqual({})
        await engine.reset({ ...service, resource: '/x' })
        expect(await admitted(9, { ...service, resource: '/x' })).toBe(3)

        // Without a resource: whatever may count the caller somewhere.
        await check({ ...service, resource: '/admin/users' })
        await check({ ...user, ip: '10.1.2.3', resource: '/x' })
        await check({ ...user, resource: '/files/1' })
        const somewhere = { base: 0, 'exemption:files:f': 1 }
        expect(await usedBy(engine, user)).toEqual(somewhere)
        expect(await usedBy(engine, { ...user, ip: '192.0.2.1' })).toEqual(somewhere)
        expect(await usedBy(engine, { ...user, ip: '10.9.9.9' })).toEqual({ ...somewhere, 'exemption:office:o': 1 })
        const ofService = { 'exemption:admin:a': 1, 'exemption:internal:i': 3, 'exemption:internal:all': 3 }
        expect(await usedBy(engine, service)).toEqual({ ...somewhere, ...ofService })
        expect(await usedBy(engine, { service: 'billing' })).toEqual({ 'exemption:internal:all': 3 })
        expect(await usedBy(engine, { ...user, service: 'another' })).toEqual(somewhere)
        await engine.reset(service)
        const used = Object.values(await usedBy(engine, service))
        expect(used).toEqual(used.map(() => 0))
        expect(await usedBy(engine, { ...user, ip: '10.9.9.9' })).toMatchObject({ 'exemption:office:o': 1 })
      })
    })
  })
}

/** Units in use by rule. */
async function usedBy(engine: PolicyEngine, who: Caller): Promise<Readonly<Record<string, number | null | undefined>>> {
  const reports = await engine.usage(who)
  return Object.fromEntries(reports.map(({ rule, counters }) => [rule, counters[0]?.used]))
}
