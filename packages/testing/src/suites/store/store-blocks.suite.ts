import { describe, expect } from 'vitest'
import type { StoreHarness } from './store-fixture.ts'
import { storeTest } from './store-test.ts'

/** Keys that are denied whatever they have left, and the end of a store. */
export function blockTests(harness: StoreHarness): void {
  const rule = { limit: 5, window: '52w' } as const
  describe('a block', () => {
    storeTest(harness, { title: 'denies its key, and takes nothing', needs: ['blocks'] }, async ({ limiter }) => {
      const five = limiter(rule)
      await five.check('key', { cost: 2 })
      await five.block('key', '1h')
      const denied = await five.check('key')
      expect(denied).toMatchObject({ allowed: false, reason: 'blocked', cost: 0, remaining: 0 })
      expect(await five.tryAcquire('key')).toBe(false)
      expect(await five.peek('key')).toMatchObject({ allowed: false, reason: 'blocked' })
      expect(await five.check('key', { cost: 5, partial: true })).toMatchObject({ allowed: false, reason: 'blocked' })
      expect(await five.reserve('key')).toMatchObject({ allowed: false, reason: 'blocked' })
      expect(await five.tryAcquire('other')).toBe(true)
      await five.unblock('key')
      expect(await five.peek('key')).toMatchObject({ allowed: true, remaining: 3 })
    })

    const timed = ['blocks', 'controlled-time'] as const
    storeTest(harness, { title: 'ends by itself, when it said it would', needs: timed }, async (fixture) => {
      const five = fixture.limiter(rule)
      await five.block('key', '10s')
      expect(await five.check('key')).toMatchObject({ reason: 'blocked', retryAfterMs: 10_000 })
      await fixture.advance(9_999)
      expect(await five.check('key')).toMatchObject({ reason: 'blocked', retryAfterMs: 1 })
      await fixture.advance(1)
      expect(await five.check('key')).toMatchObject({ allowed: true, remaining: 4 })
    })

    storeTest(harness, { title: 'is replaced by a later one', needs: timed }, async (fixture) => {
      const five = fixture.limiter(rule)
      await five.block('key', '1h')
      await five.block('key', '10s')
      await fixture.advance(10_000)
      expect(await five.tryAcquire('key')).toBe(true)
    })

    storeTest(
      harness,
      { title: 'with reset starts the counter afresh, in the same step', needs: timed },
      async (fixture) => {
        for (const [name, windows] of Object.entries({ one: 1, several: 2 })) {
          const five = fixture.limiter(windows === 1 ? rule : { windows: [rule, { limit: 7, window: '104w' }] }, name)
          await five.check('key', { cost: 5 })
          await five.check('other', { cost: 4 })
          expect(await five.block('key', '1h', { reset: true })).toBeUndefined()
          expect(await five.check('key')).toMatchObject({ allowed: false, reason: 'blocked', retryAfterMs: 3_600_000 })
          await fixture.advance(3_599_999)
          expect(await five.check('key')).toMatchObject({ allowed: false, reason: 'blocked', retryAfterMs: 1 })
          await fixture.advance(1)
          expect(await five.check('key', { cost: 5 })).toMatchObject({ allowed: true, remaining: 0 })
          expect(await five.check('key')).toMatchObject({ allowed: false, reason: 'limit' })
          expect(await five.peek('other')).toMatchObject({ remaining: 1 })
        }
      },
    )

    storeTest(
      harness,
      { title: 'with reset that is lifted leaves a fresh counter', needs: ['blocks'] },
      async (fixture) => {
        const five = fixture.limiter(rule)
        await five.check('key', { cost: 5 })
        await five.block('key', '1h', { reset: true })
        await five.unblock('key')
        expect(await five.peek('key')).toMatchObject({ allowed: true, remaining: 5 })
      },
    )

    storeTest(
      harness,
      { title: 'with reset forgets long states too', needs: ['blocks', 'long-states'] },
      async ({ limiter }) => {
        const log = limiter({ algorithm: 'sliding-window-log', limit: 5, window: '52w' })
        await log.check('key', { cost: 5 })
        await log.block('key', '1h', { reset: true })
        await log.unblock('key')
        expect(await log.peek('key')).toMatchObject({ allowed: true, remaining: 5 })
      },
    )

    storeTest(
      harness,
      { title: 'without reset leaves the counter as it is', needs: ['blocks'] },
      async ({ limiter }) => {
        const five = limiter(rule)
        await five.check('key', { cost: 5 })
        await five.block('key', '1h', { reset: false })
        await five.unblock('key')
        expect(await five.peek('key')).toMatchObject({ allowed: false, remaining: 0 })
      },
    )

    storeTest(harness, { title: 'is lifted by a reset', needs: ['blocks'] }, async ({ limiter }) => {
      const five = limiter(rule)
      await five.check('key', { cost: 5 })
      await five.block('key', '1h')
      await five.reset('key')
      expect(await five.peek('key')).toMatchObject({ allowed: true, remaining: 5 })
    })

    storeTest(harness, { title: 'holds for its rule only', needs: ['blocks'] }, async ({ set }) => {
      const limits = set({ a: rule, b: rule })
      await limits.limiter('a').block('key', '1h')
      expect(await limits.limiter('b').tryAcquire('key')).toBe(true)
      const both = [
        { rule: 'a' as const, key: 'key' },
        { rule: 'b' as const, key: 'key' },
      ]
      expect(await limits.checkAll(both)).toMatchObject({ allowed: false, reason: 'blocked', rule: 'a' })
      expect(await limits.limiter('b').peek('key')).toMatchObject({ remaining: 4 })
    })

    storeTest(
      harness,
      { title: 'stays when it is lifted twice or was never there', needs: ['blocks'] },
      async (fixture) => {
        const five = fixture.limiter(rule)
        await five.unblock('key')
        await five.block('key', '1h')
        await five.unblock('other')
        expect(await five.tryAcquire('key')).toBe(false)
      },
    )
  })

  describe('after close()', () => {
    storeTest(harness, { title: 'everything but close is rejected, by code' }, async ({ store, limiter }) => {
      const five = limiter(rule)
      const decision = await five.check('key')
      await store.close()
      await store.close()
      const closed = expect.objectContaining({ code: 'SLUICE_CLOSED' })
      for (const use of [
        () => five.tryAcquire('key'),
        () => five.check('key'),
        () => five.peek('key'),
        () => five.checkAll([{ key: 'key' }]),
        () => five.reserve('key'),
        () => five.refund(decision),
        () => five.adjust('key', 1),
        () => five.reset('key'),
        () => five.block('key', '1s'),
        () => five.unblock('key'),
      ]) {
        await expect((async () => await use())()).rejects.toEqual(closed)
      }
    })
  })
}
