import fc from 'fast-check'
import { describe, expect } from 'vitest'
import { HOSTILE_KEYS, keys } from '../../properties/arbitraries.ts'
import type { StoreHarness } from './store-fixture.ts'
import { storeTest } from './store-test.ts'

/** Keys and rules do not know each other, whatever they are called. */
export function isolationTests(harness: StoreHarness): void {
  const once = { algorithm: 'fixed-window', limit: 1, window: '52w' } as const
  const slot = { algorithm: 'concurrency', limit: 1, lease: '52w' } as const

  describe('isolation', () => {
    for (const [title, rule] of Object.entries({ 'hostile keys': once, 'hostile keys of long states': slot })) {
      const needs = rule === slot ? (['long-states'] as const) : []
      storeTest(harness, { title: `${title} are all different`, needs }, async ({ limiter }) => {
        const one = limiter(rule)
        for (const key of HOSTILE_KEYS) expect([key, await one.tryAcquire(key)]).toEqual([key, true])
        for (const key of HOSTILE_KEYS) expect([key, await one.tryAcquire(key)]).toEqual([key, false])
      })
    }

    storeTest(harness, { title: 'any two keys are one key only when they are the same' }, async ({ limiter }) => {
      const one = limiter(once)
      await fc.assert(
        fc.asyncProperty(keys(), keys(), async (first, second) => {
          await one.reset(first)
          await one.reset(second)
          expect(await one.tryAcquire(first)).toBe(true)
          expect(await one.tryAcquire(second)).toBe(first !== second)
          await one.reset(first)
          expect(await one.tryAcquire(second)).toBe(first === second)
        }),
        { numRuns: 200 },
      )
    })

    storeTest(
      harness,
      { title: 'any two keys are blocked only when they are the same', needs: ['blocks'] },
      async (fixture) => {
        const one = fixture.limiter({ ...once, limit: 1_000_000 })
        await fc.assert(
          fc.asyncProperty(keys(), keys(), async (first, second) => {
            await one.block(first, '1h')
            expect(await one.tryAcquire(second)).toBe(first !== second)
            await one.unblock(first)
            expect(await one.tryAcquire(second)).toBe(true)
          }),
          { numRuns: 50 },
        )
      },
    )

    storeTest(
      harness,
      { title: 'rules do not share counters, whatever their names and keys join to' },
      async ({ set }) => {
        const limits = set({ a: once, ab: once, 'a:b': once, '1:a': once, 'a/b': once })
        const names = ['a', 'ab', 'a:b', '1:a', 'a/b'] as const
        const all = ['b', 'bb', ':b', 'b:b', '1:b', 'a', 'ab']
        for (const name of names) {
          for (const key of all)
            expect([name, key, await limits.limiter(name).tryAcquire(key)]).toEqual([name, key, true])
        }
        for (const name of names) {
          for (const key of all)
            expect([name, key, await limits.limiter(name).tryAcquire(key)]).toEqual([name, key, false])
        }
      },
    )

    storeTest(harness, { title: 'two limiters of one name and rule share their counters' }, async ({ limiter }) => {
      const [one, other] = [limiter(once), limiter(once)]
      expect(await one.tryAcquire('key')).toBe(true)
      expect(await other.tryAcquire('key')).toBe(false)
    })

    storeTest(harness, { title: 'one name cannot stand for two rules' }, ({ limiter }) => {
      limiter(once)
      const conflict = expect.objectContaining({ code: 'SLUICE_RULE_CONFLICT' })
      expect(() => limiter({ ...once, limit: 2 })).toThrow(conflict)
      expect(() => limiter({ ...once, limit: 2 }, 'another')).not.toThrow()
    })
  })
}
