import type { PolicyEvent, RuleSet } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { withPolicy } from './policy-scene.ts'
import type { StoreHarness } from './store-scene.ts'

function ruleSetOf(limit: number, more: object = {}): RuleSet {
  return { rules: [{ name: 'base', resource: '*', dimension: 'user', limit, window: '1m', ...more }] }
}

function refusalsIn(events: readonly PolicyEvent[]): number {
  return events.filter((event) => event.type === 'shadow' && !event.allowed).length
}

function measuredIn(events: readonly PolicyEvent[]): number {
  return events.filter((event) => event.type === 'shadow').length
}

/** Rules and versions that are measured before they are enforced. */
export function rolloutTests(harness: StoreHarness): void {
  describe('shadow', () => {
    it('a rule in shadow is measured and never refuses', async () => {
      await withPolicy(harness, ruleSetOf(2, { shadow: true }), async ({ admitted, events, settled }) => {
        expect(await admitted(5, { resource: '/x', user: 'u' })).toBe(5)
        await settled()
        expect([measuredIn(events), refusalsIn(events)]).toEqual([5, 3])
        expect(events[0]).toEqual({ type: 'shadow', rule: 'base', dimension: 'user', allowed: true, version: 0 })
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
        expect([measuredIn(events), refusalsIn(events)]).toEqual([3, 1])
      })
    })

    it('a rule at n percent is enforced for the same callers each time, and measured for the others', async () => {
      await withPolicy(harness, ruleSetOf(1, { percent: 30 }), async ({ check, events, settled }) => {
        let refused = 0
        for (let user = 0; user < 300; user++) {
          const request = { resource: '/x', user: `user-${user}` }
          const first = await check(request)
          const second = await check(request)
          expect(first.allowed).toBe(true)
          if (!second.allowed) refused++
        }
        await settled()
        expect(refused).toBeGreaterThan(50)
        expect(refused).toBeLessThan(130)
        expect(refusalsIn(events)).toBe(300 - refused)
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
        expect([measuredIn(events), refusalsIn(events)]).toEqual([5, 3])
        expect(events[0]).toMatchObject({ rule: 'base', version: 2 })
      })
    })

    it('a candidate at n percent is enforced for its share, and those counters go on when it is enforced for all', async () => {
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

    it('a rule set that cannot be used is refused whole, and the old one stays', async () => {
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
