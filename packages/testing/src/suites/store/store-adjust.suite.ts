import { describe, expect } from 'vitest'
import type { StoreHarness } from './store-fixture.ts'
import { EVERY_ALGORITHM, needsOf, storeTest } from './store-test.ts'

/** Units taken and given back without a decision to go by. */
export function adjustTests(harness: StoreHarness): void {
  describe('adjust', () => {
    for (const { algorithm, rule } of EVERY_ALGORITHM) {
      if (algorithm === 'concurrency' || algorithm === 'leaky-bucket-queue') continue
      storeTest(
        harness,
        { title: `takes and gives back units of ${algorithm}, never below zero use`, needs: needsOf(algorithm) },
        async ({ limiter }) => {
          const six = limiter(rule)
          expect(await six.adjust('key', 4)).toEqual({ outcome: 'settled', corrected: 4 })
          expect(await six.peek('key')).toMatchObject({ remaining: 2 })
          await six.check('key')
          expect(await six.adjust('key', -3)).toEqual({ outcome: 'settled', corrected: -3 })
          expect(await six.peek('key')).toMatchObject({ remaining: 4 })
          const { corrected } = await six.adjust('key', -5)
          // A few millionths may have flowed off by themselves.
          expect(corrected).toBeCloseTo(-2, 3)
          expect(await six.peek('key')).toMatchObject({ remaining: 6 })
          expect(await six.peek('other')).toMatchObject({ remaining: 6 })
        },
      )

      storeTest(
        harness,
        { title: `takes units of ${algorithm} beyond the limit, which later calls feel`, needs: needsOf(algorithm) },
        async ({ limiter }) => {
          const six = limiter(rule)
          await six.check('key', { cost: 6 })
          expect(await six.adjust('key', 3)).toEqual({ outcome: 'settled', corrected: 3 })
          expect(await six.check('key')).toMatchObject({ allowed: false, remaining: 0 })
          await six.adjust('key', -3)
          expect(await six.check('key')).toMatchObject({ allowed: false, remaining: 0 })
          await six.adjust('key', -1)
          expect(await six.check('key')).toMatchObject({ allowed: true, remaining: 0 })
        },
      )
    }

    storeTest(harness, { title: 'changes every window of a rule' }, async ({ limiter }) => {
      const both = limiter({
        windows: [
          { limit: 5, window: '26w' },
          { limit: 9, window: '52w' },
        ],
      })
      expect(await both.adjust('key', 2)).toEqual({ outcome: 'settled', corrected: 4 })
      const { limits } = await both.peek('key')
      expect(limits.map(({ remaining }) => remaining)).toEqual([3, 7])
    })

    storeTest(
      harness,
      { title: 'reaches back into the window before, newest units first', needs: ['controlled-time'] },
      async (fixture) => {
        const counter = fixture.limiter({ algorithm: 'sliding-window-counter', limit: 10, window: '1m' })
        await counter.check('key', { cost: 8 })
        await fixture.advance(60_000)
        await counter.check('key', { cost: 2 })
        expect(await counter.peek('key')).toMatchObject({ remaining: 0 })
        // The 2 of this minute, and 3 of the 8 before, which still count in full.
        expect(await counter.adjust('key', -5)).toEqual({ outcome: 'settled', corrected: -5 })
        expect(await counter.peek('key')).toMatchObject({ remaining: 5 })
      },
    )

    storeTest(
      harness,
      { title: 'does not reach into a window that is over', needs: ['controlled-time'] },
      async (fixture) => {
        const fixed = fixture.limiter({ algorithm: 'fixed-window', limit: 5, window: '1m' })
        await fixed.check('key', { cost: 4 })
        await fixture.advance(60_000)
        expect(await fixed.adjust('key', -4)).toMatchObject({ outcome: 'settled' })
        expect(await fixed.peek('key')).toMatchObject({ remaining: 5 })
      },
    )

    storeTest(harness, { title: 'of nothing, and of an unknown key, changes nothing' }, async ({ limiter }) => {
      const five = limiter({ limit: 5, window: '52w' })
      expect(await five.adjust('key', 0)).toEqual({ outcome: 'settled', corrected: 0 })
      expect((await five.adjust('key', -3)).corrected).toBeCloseTo(0)
      expect(await five.peek('key')).toMatchObject({ remaining: 5 })
    })

    storeTest(
      harness,
      { title: 'of slots, or of turns to be given back, is rejected by code' },
      async ({ limiter }) => {
        const slots = limiter({ algorithm: 'concurrency', limit: 2, lease: '1m' }, 'slots')
        const queue = limiter({ algorithm: 'leaky-bucket-queue', capacity: 6, ratePerSecond: 1e-6 }, 'queue')
        const unsupported = expect.objectContaining({ code: 'SLUICE_UNSUPPORTED' })
        for (const use of [() => slots.adjust('key', 1), () => queue.adjust('key', -1)]) {
          await expect((async () => await use())()).rejects.toEqual(unsupported)
        }
        expect(await queue.adjust('key', 2)).toEqual({ outcome: 'settled', corrected: 2 })
        expect(await queue.peek('key')).toMatchObject({ remaining: 4 })
      },
    )
  })
}
