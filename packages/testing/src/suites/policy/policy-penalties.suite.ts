import { joinKey } from '@sluice/core'
import type { PolicyRequest, PolicyRule, PolicyVersions, RuleSet } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import type { StoreHarness } from '../store/store-fixture.ts'
import type { PolicyFixture } from './policy-fixture.ts'
import { withPolicy } from './policy-fixture.ts'

const PENALTY = { after: 3, within: '10s', block: '10s', growth: 3, longest: '1m', forgetAfter: '1h' } as const
const RULE = { name: 'base', resource: '*', dimension: 'user', limit: 1, window: '1s', penalty: PENALTY } as const
const STRICT: RuleSet = { rules: [RULE] }
/** Its state fits no small store, and it has nothing to do with blocks. */
const LARGE = { resource: '/slots', dimension: 'user', algorithm: 'concurrency', limit: 10_000, lease: '1m' } as const
const OTHERS: RuleSet = { rules: [{ name: 'others', resource: '*', dimension: 'ip', limit: 100, window: '1m' }] }

const request = { resource: '/x', user: 'u' } as const

/** Blocks that follow from denials, and their removal. */
export function penaltyTests(harness: StoreHarness): void {
  describe('automatic blocks', () => {
    it('follow sustained violations, grow, end, are listed and can be lifted', async () => {
      const kept: unknown[] = []
      const options = { ruleSet: STRICT, keepBlock: (block: unknown) => void kept.push(block) }
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

    it('hold for a combination, however the rule orders its names', async () => {
      const entity = joinKey(['t', 'u'])
      for (const dimension of ['user+tenant', 'tenant+user']) {
        const kept: unknown[] = []
        const elsewhere = { name: 'elsewhere', resource: '/y', dimension, limit: 100, window: '1m' } as const
        const ruleSet = { rules: [{ ...RULE, dimension }, elsewhere] }
        const options = { ruleSet, keepBlock: (block: unknown) => void kept.push(block) }
        await withPolicy(harness, options, async (fixture) => {
          const { engine, check, advance } = fixture
          const joint = { ...request, tenant: 't' }
          const there = { ...joint, resource: '/y' }
          await provoke(fixture, joint)
          expect(await check(there)).toMatchObject({ reason: 'blocked', retryAfterMs: 10_000 })
          expect(await check({ ...there, tenant: 'other' })).toMatchObject({ allowed: true })
          const block = { dimension: 'tenant+user', entity, strikes: 1, rule: 'base' }
          expect(kept).toEqual([expect.objectContaining(block)])
          expect(engine.entries.blocks()).toEqual([expect.objectContaining(block)])
          expect((await engine.explain(there)).block).toMatchObject(block)
          // The next one is longer: its strikes are found under the same name.
          await advance(10_000)
          await provoke(fixture, joint)
          expect(await check(there)).toMatchObject({ reason: 'blocked', retryAfterMs: 30_000 })
          expect(await engine.unblock(dimension, entity)).toBe(true)
          expect(engine.entries.blocks()).toEqual([])
          expect(await check(there)).toMatchObject({ allowed: true })
          await advance(1000)
          expect(await check(joint)).toMatchObject({ allowed: true })
        })
      }
    })

    it('count a denial once, however many windows of the rule deny', async () => {
      const windows = [
        { limit: 1, window: '1m' },
        { limit: 1, window: '1h' },
      ] as const
      const rule = { name: 'two', resource: '*', dimension: 'user', windows, penalty: PENALTY } as const
      await withPolicy(harness, { rules: [rule] }, async ({ check, admitted, settled }) => {
        await admitted(3, request)
        await settled()
        expect(await check(request)).toMatchObject({ reason: 'limit' })
        await settled()
        expect(await check(request)).toMatchObject({ reason: 'blocked' })
      })
    })

    it('with reset end with a fresh counter, however long its window', async () => {
      const penalty = { after: 1, within: '1m', block: '1h', growth: 1 } as const
      const windows = [
        { limit: 3, window: '90d' },
        { limit: 4, window: '180d' },
      ] as const
      const rule = { name: 'login', resource: '*', dimension: 'user', algorithm: 'fixed-window', windows } as const
      for (const [reset, again] of [
        [true, 3],
        [false, 0],
      ] as const) {
        const rules = [{ ...rule, penalty: { ...penalty, reset } }]
        await withPolicy(harness, { rules }, async ({ check, admitted, advance, settled }) => {
          expect(await admitted(3, request)).toBe(3)
          expect(await check(request)).toMatchObject({ reason: 'limit' })
          await settled()
          expect(await check(request)).toMatchObject({ reason: 'blocked', retryAfterMs: 3_600_000 })
          await advance(3_600_000)
          expect(await admitted(3, request)).toBe(again)
        })
      }
    })

    it('are as long as allowed at most, and forgotten after a while', async () => {
      await withPolicy(harness, STRICT, async ({ check, admitted, advance, settled }) => {
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

    it.each([4, 10, 100])('are made once for %i denials in flight, on any number of nodes', async (denials) => {
      const penalty = { ...PENALTY, after: 1 } as const
      const ruleSet: RuleSet = { rules: [{ ...RULE, penalty }] }
      await withPolicy(harness, ruleSet, async ({ engine, check, admitted, advance, another, settled }) => {
        const nodes = [engine, another(), another()]
        for (const node of nodes) node.use({ enforced: { number: 1, ruleSet } })
        for (const lengthMs of [10_000, 30_000]) {
          expect(await admitted(1, request)).toBe(1)
          // The denials that follow the first one find its block, or are in flight together with it.
          await check(request)
          await Promise.all(Array.from({ length: denials }, (_, call) => nodes[call % 3]!.check(request)))
          await settled()
          const blocks = nodes.flatMap((node) => node.entries.blocks())
          expect(blocks).toHaveLength(1)
          for (const node of nodes) {
            expect(await node.check(request)).toMatchObject({ reason: 'blocked', retryAfterMs: lengthMs })
          }
          expect(engine.entries.blocks()).toEqual(blocks)
          await advance(lengthMs)
        }
      })
    })

    it('take new denials after each block', async () => {
      await withPolicy(harness, STRICT, async ({ engine, admitted, check, advance, settled }) => {
        await admitted(4, request)
        await settled()
        await advance(10_000)
        expect(engine.entries.blocks()).toEqual([])
        expect(await admitted(3, request)).toBe(1)
        await settled()
        expect(await check(request)).toMatchObject({ reason: 'limit' })
        await settled()
        expect(await check(request)).toMatchObject({ reason: 'blocked', retryAfterMs: 30_000 })
      })
    })

    it('of two rules at once are one block', async () => {
      const penalty = { ...PENALTY, after: 1 } as const
      const beside = { ...RULE, name: 'beside', always: true, penalty } as const
      await withPolicy(harness, { rules: [{ ...RULE, penalty }, beside] }, async (fixture) => {
        const { engine, admitted, advance, check, settled } = fixture
        await admitted(2, request)
        await settled()
        expect(engine.entries.blocks()).toEqual([expect.objectContaining({ strikes: 1 })])
        expect(await check(request)).toMatchObject({ reason: 'blocked', retryAfterMs: 10_000 })
        // The denials of the other rule belong to that block as well.
        await advance(10_000)
        expect(await admitted(1, request)).toBe(1)
        await settled()
        expect(await check(request)).toMatchObject({ reason: 'limit' })
        await settled()
        expect(engine.entries.blocks()).toEqual([expect.objectContaining({ strikes: 2 })])
      })
    })

    it('do not follow denials that are spread out, nor those of others', async () => {
      await withPolicy(harness, STRICT, async ({ check, admitted, advance, settled }) => {
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

  describe('a block that is lifted', () => {
    const { penalty: _penalty, ...mild } = { ...RULE, limit: 1000 }
    const inForce = (ruleSet: RuleSet): PolicyVersions => ({ enforced: { number: 1, ruleSet } })
    const tried = (ruleSet: RuleSet): PolicyVersions => ({
      ...inForce(OTHERS),
      candidate: { number: 2, ruleSet, stage: 'percent', percent: 100 },
    })
    const ofTier = (rule: PolicyRule): RuleSet => ({ rules: [], tiers: [{ name: 'gold', rules: [rule] }] })
    const ofExemption = (rule: PolicyRule): RuleSet => ({
      rules: [],
      exemptions: [{ name: 'services', match: { services: ['billing'] }, rules: [rule] }],
    })
    const gold = { ...request, tier: 'gold' }
    const billing = { ...request, service: 'billing' }

    /** What blocks the caller, what is in force when it is lifted, and what the caller asks for. */
    const cases: readonly [string, PolicyVersions, PolicyVersions, PolicyRequest][] = [
      ['of a rule', inForce(STRICT), inForce(STRICT), request],
      ['of a rule among others', inForce(STRICT), inForce({ rules: [RULE, LARGE] }), request],
      ['of a rule that has no penalty any more', inForce(STRICT), inForce({ rules: [mild] }), request],
      ['of a rule of the candidate', tried(STRICT), tried(STRICT), request],
      ['of a rule of an earlier candidate', tried(STRICT), inForce({ rules: [mild] }), request],
      ['of a rule of a tier', inForce(ofTier(RULE)), inForce(ofTier(mild)), gold],
      ['of a rule of an exemption', inForce(ofExemption(RULE)), inForce(ofExemption(mild)), billing],
    ]

    it.each(cases)('%s lets the caller in, and is lifted once', async (_title, before, after, asked) => {
      await withPolicy(harness, { rules: [] }, async (fixture) => {
        const { engine, check, advance } = fixture
        engine.use(before)
        await provoke(fixture, asked)
        engine.use(after)
        expect(await check(asked)).toMatchObject({ reason: 'blocked' })
        expect(await engine.unblock('user', 'v')).toBe(false)
        expect(await engine.unblock('user', 'u')).toBe(true)
        await advance(1000)
        expect(await check(asked)).toMatchObject({ allowed: true })
        expect(await engine.unblock('user', 'u')).toBe(false)
      })
    })

    it.each(cases)('%s is lifted by a node that only finds it in the store', async (_title, before, after, asked) => {
      await withPolicy(harness, { rules: [] }, async (fixture) => {
        const { engine, check, advance, another } = fixture
        engine.use(before)
        await provoke(fixture, asked)
        const other = another()
        other.use(after)
        expect(await other.check(asked)).toMatchObject({ reason: 'blocked' })
        expect(await other.unblock('user', 'u')).toBe(true)
        await advance(1000)
        expect(await other.check(asked)).toMatchObject({ allowed: true })
        expect(await other.unblock('user', 'u')).toBe(false)
        // The first node hears of it by the configuration.
        engine.entries.removeBlock({ dimension: 'user', entity: 'u' })
        await advance(1000)
        expect(await check(asked)).toMatchObject({ allowed: true })
      })
    })

    it('stays lifted when its rule was gone meanwhile and comes back', async () => {
      await withPolicy(harness, STRICT, async (fixture) => {
        const { engine, check, advance } = fixture
        await provoke(fixture, request)
        // An operator blocks the caller as well: that block names no rule.
        engine.block('user', 'u', { duration: '1m' })
        engine.use(inForce(OTHERS))
        expect(await engine.unblock('user', 'u')).toBe(true)
        engine.use(inForce(STRICT))
        await advance(1000)
        expect(await check(request)).toMatchObject({ allowed: true })
      })
    })

    it('stays lifted when its rule comes back, by a node that knows it from the block alone', async () => {
      await withPolicy(harness, STRICT, async (fixture) => {
        const { engine, advance, another } = fixture
        await provoke(fixture, request)
        const [block] = engine.entries.blocks()
        const told = another()
        told.use(inForce(OTHERS))
        told.entries.putBlock(block!)
        expect(await told.unblock('user', 'u')).toBe(true)
        told.use(inForce(STRICT))
        await advance(1000)
        expect(await told.check(request)).toMatchObject({ allowed: true })
      })
    })

    it('by a rule that is named stays lifted, also where the rule is unknown', async () => {
      await withPolicy(harness, STRICT, async (fixture) => {
        await provoke(fixture, request)
        const other = fixture.another()
        expect(await other.unblock('user', 'u', { rule: 'base' })).toBe(false)
        other.use(inForce(STRICT))
        await fixture.advance(1000)
        expect(await other.check(request)).toMatchObject({ allowed: true })
      })
    })

    it('by the configuration is lifted in the store too', async () => {
      await withPolicy(harness, STRICT, async (fixture) => {
        const { engine, check, advance, settled } = fixture
        await provoke(fixture, request)
        expect(engine.entries.removeBlock({ dimension: 'user', entity: 'u' })).toBe(true)
        await settled()
        await advance(1000)
        expect(await check(request)).toMatchObject({ allowed: true })
      })
    })

    it('takes the denials that led to it along', async () => {
      await withPolicy(harness, STRICT, async (fixture) => {
        const { engine, admitted, check, settled, advance } = fixture
        await provoke(fixture, request)
        engine.use(inForce({ rules: [mild] }))
        await engine.unblock('user', 'u')
        engine.use(inForce(STRICT))
        await advance(1000)
        expect(await admitted(3, request)).toBe(1)
        await settled()
        expect(await check(request)).toMatchObject({ reason: 'limit' })
      })
    })
  })
}

/** Goes on after being denied until a penalty follows. */
async function provoke({ admitted, settled, check }: PolicyFixture, asked: PolicyRequest): Promise<void> {
  expect(await admitted(4, asked)).toBe(1)
  await settled()
  expect(await check(asked)).toMatchObject({ allowed: false, reason: 'blocked' })
}
