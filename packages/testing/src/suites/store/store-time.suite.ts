import { compileRule } from '@sluice/core/internal'
import { describe, expect } from 'vitest'
import type { StoreFixture, StoreHarness } from './store-fixture.ts'
import { storeTest } from './store-test.ts'

/** What passes with time: windows, refills, carried units, and rules that change. */
export function timeTests(harness: StoreHarness): void {
  const needs = ['controlled-time'] as const
  describe('with time', () => {
    storeTest(harness, { title: 'the retry is exact to the millisecond', needs }, async (fixture) => {
      for (const [name, rule] of Object.entries({
        bucket: { algorithm: 'token-bucket', capacity: 3, refillPerSecond: 2 },
        gcra: { limit: 3, window: '2s' },
        fixed: { algorithm: 'fixed-window', limit: 3, window: '2s' },
        counter: { algorithm: 'sliding-window-counter', limit: 3, window: '2s' },
      } as const)) {
        const three = fixture.limiter(rule, name)
        await fixture.advance(700)
        await three.check('key', { cost: 3 })
        const { retryAfterMs } = await three.check('key', { cost: 2 })
        expect(retryAfterMs).toBeGreaterThan(0)
        await fixture.advance(retryAfterMs - 1)
        expect(await three.check('key', { cost: 2 })).toMatchObject({ allowed: false, retryAfterMs: 1 })
        await fixture.advance(1)
        expect(await three.check('key', { cost: 2 })).toMatchObject({ allowed: true })
      }
    })

    storeTest(
      harness,
      { title: 'a partial call that found nothing may come back when it was told', needs },
      async (fixture) => {
        const bucket = fixture.limiter({ algorithm: 'token-bucket', capacity: 3, refillPerSecond: 2 })
        await bucket.check('key', { cost: 3 })
        const denied = await bucket.check('key', { cost: 50, partial: true })
        expect(denied).toMatchObject({ allowed: false, reason: 'limit', retryAfterMs: 500 })
        await fixture.advance(499)
        expect(await bucket.check('key', { cost: 50, partial: true })).toMatchObject({
          allowed: false,
          retryAfterMs: 1,
        })
        await fixture.advance(1)
        expect(await bucket.check('key', { cost: 50, partial: true })).toMatchObject({ allowed: true, cost: 1 })
      },
    )

    storeTest(harness, { title: 'a refund does not reach a later window', needs }, async (fixture) => {
      const five = fixture.limiter({ algorithm: 'fixed-window', limit: 5, window: '1m' })
      const decision = await five.check('key', { cost: 4 })
      await fixture.advance(60_000)
      await five.check('key', { cost: 3 })
      expect(await five.refund(decision)).toEqual({ outcome: 'settled', corrected: 0 })
      expect(await five.peek('key')).toMatchObject({ remaining: 2 })
    })

    storeTest(harness, { title: 'unused units carry over, up to twice the limit', needs }, async (fixture) => {
      const ten = fixture.limiter({ algorithm: 'fixed-window', limit: 10, window: '1m', rollover: true })
      await ten.check('key', { cost: 4 })
      await fixture.advance(60_000)
      expect(await ten.peek('key')).toMatchObject({ remaining: 16 })
      await fixture.advance(60_000)
      expect(await ten.check('key', { cost: 20 })).toMatchObject({ allowed: true, remaining: 0 })
      await fixture.advance(60_000)
      expect(await ten.peek('key')).toMatchObject({ remaining: 10 })
    })

    storeTest(harness, { title: 'a bucket holds a fraction beyond its whole units', needs }, async (fixture) => {
      const bucket = fixture.limiter({ algorithm: 'token-bucket', capacity: 2.5, refillPerSecond: 1 })
      expect(await bucket.check('key', { cost: 3 })).toMatchObject({ allowed: false, reason: 'never', limit: 2 })
      expect(await bucket.check('key', { cost: 2 })).toMatchObject({ allowed: true, limit: 2, remaining: 0 })
      expect(await bucket.check('key')).toMatchObject({ allowed: false, retryAfterMs: 500 })
      await fixture.advance(499)
      expect(await bucket.check('key')).toMatchObject({ allowed: false, retryAfterMs: 1 })
      await fixture.advance(1)
      expect(await bucket.check('key')).toMatchObject({ allowed: true, remaining: 0 })
      await fixture.advance(2499)
      expect(await bucket.peek('key')).toMatchObject({ remaining: 2 })
    })

    storeTest(harness, { title: 'tokens roll over, up to twice the capacity, and expire', needs }, async (fixture) => {
      const four = fixture.limiter({ algorithm: 'token-bucket', capacity: 4, refillPerSecond: 1, rollover: true })
      expect(await four.check('key', { cost: 5 })).toMatchObject({ allowed: false, reason: 'never', limit: 4 })
      const decision = await four.check('key', { cost: 4 })
      expect(decision).toMatchObject({ allowed: true, remaining: 0 })
      expect(await four.check('key', { cost: 8 })).toMatchObject({ allowed: false, retryAfterMs: 8000 })
      await fixture.advance(6000)
      expect(await four.check('key', { cost: 7 })).toMatchObject({ allowed: false, remaining: 6, retryAfterMs: 1000 })
      expect(await four.check('key', { cost: 6 })).toMatchObject({ allowed: true, remaining: 0 })
      // It has flowed back long ago.
      expect(await four.refund(decision)).toEqual({ outcome: 'settled', corrected: 0 })
      await fixture.advance(8000)
      const taken = await four.check('key', { cost: 3 })
      expect(taken).toMatchObject({ allowed: true, remaining: 5 })
      expect(await four.refund(taken)).toEqual({ outcome: 'settled', corrected: -3 })
      await fixture.advance(7999)
      expect(await four.peek('key')).toMatchObject({ remaining: 8 })
      await fixture.advance(1)
      expect(await four.check('key', { cost: 5 })).toMatchObject({ allowed: false, reason: 'never', remaining: 4 })
    })

    storeTest(harness, { title: 'several windows each come back in their time', needs }, async (fixture) => {
      const both = fixture.limiter({
        algorithm: 'fixed-window',
        windows: [
          { limit: 2, window: '1s' },
          { limit: 3, window: '1m' },
        ],
      })
      await both.check('key', { cost: 2 })
      expect(await both.check('key')).toMatchObject({ allowed: false, limit: 2, retryAfterMs: 1000 })
      await fixture.advance(1000)
      expect(await both.tryAcquire('key')).toBe(true)
      expect(await both.check('key')).toMatchObject({ allowed: false, limit: 3, retryAfterMs: 59_000 })
      await fixture.advance(59_000)
      expect(await both.tryAcquire('key')).toBe(true)
    })

    storeTest(harness, { title: 'a shaper lets calls out one after the other', needs }, async (fixture) => {
      const shaper = fixture.limiter({ algorithm: 'leaky-bucket-queue', capacity: 3, ratePerSecond: 10 })
      const delays: (number | string)[] = []
      for (let call = 0; call < 4; call++) {
        const decision = await shaper.check('key')
        delays.push(decision.allowed ? decision.delayMs : decision.reason)
      }
      expect(delays).toEqual([0, 100, 200, 'limit'])
      await fixture.advance(100)
      expect(await shaper.check('key')).toMatchObject({ allowed: true, delayMs: 200 })
    })

    storeTest(harness, { title: 'a clock that goes back gives nothing out twice', needs }, async (fixture) => {
      const two = fixture.limiter({ algorithm: 'fixed-window', limit: 2, window: '1s' })
      await fixture.advance(10_000)
      await two.check('key', { cost: 2 })
      fixture.clock.setMicros(fixture.clock.nowMicros() - 5_000_000)
      expect(await two.tryAcquire('key')).toBe(false)
      await fixture.advance(5_999)
      expect(await two.tryAcquire('key')).toBe(false)
      await fixture.advance(1)
      expect(await two.tryAcquire('key')).toBe(true)
    })
  })

  calendarTests(harness)
  burstTests(harness)
  changeTests(harness)
}

function calendarTests(harness: StoreHarness): void {
  const needs = ['controlled-time', 'calendar'] as const
  storeTest(harness, { title: 'a calendar day begins at midnight where the rule says', needs }, async (fixture) => {
    const day = fixture.limiter({
      algorithm: 'fixed-window',
      limit: 1,
      window: { calendar: 'day', timeZone: 'America/New_York' },
    })
    // The fake clock stands at midnight UTC, 19:00 of the day before in New York.
    expect(await day.check('key')).toMatchObject({ allowed: true })
    expect(await day.check('key')).toMatchObject({ allowed: false, retryAfterMs: 5 * 3_600_000 })
    await fixture.advance(5 * 3_600_000 - 1)
    expect(await day.tryAcquire('key')).toBe(false)
    await fixture.advance(1)
    expect(await day.check('key')).toMatchObject({ allowed: true })
    expect(await day.check('key')).toMatchObject({ allowed: false, retryAfterMs: 24 * 3_600_000 })
  })
}

function burstTests(harness: StoreHarness): void {
  storeTest(harness, { title: 'a burst is for those entitled, after the window' }, async ({ limiter }) => {
    const both = limiter({
      algorithm: 'hybrid',
      limit: 2,
      window: '52w',
      burst: { capacity: 3, refillPerSecond: 1e-6 },
    })
    expect(await both.check('key', { cost: 3, entitled: false })).toMatchObject({ allowed: false, reason: 'never' })
    const paid = await both.check('key', { cost: 4 })
    expect(paid).toMatchObject({ allowed: true, remaining: 1 })
    expect(await both.check('key', { entitled: false })).toMatchObject({ allowed: false, remaining: 0 })
    // The burst is given back first: two units of it, then the window's.
    await both.refund(paid, 2)
    expect(await both.peek('key', { entitled: false })).toMatchObject({ allowed: false, remaining: 0 })
    expect(await both.peek('key')).toMatchObject({ remaining: 3 })
    await both.refund(paid, 1)
    expect(await both.peek('key', { entitled: false })).toMatchObject({ allowed: true, remaining: 1 })
    expect(await both.peek('key')).toMatchObject({ remaining: 4 })
  })
}

function changeTests(harness: StoreHarness): void {
  const fixed = (limit: number) => compileRule('rule', { algorithm: 'fixed-window', limit, window: '52w' })[0]!

  storeTest(harness, { title: 'a changed limit applies to what was used, at once' }, async ({ ask }) => {
    expect(await ask(fixed(5), 'key', 5)).toEqual({ allowed: true, remaining: 0 })
    expect(await ask(fixed(5), 'key', 1)).toEqual({ allowed: false, remaining: 0 })
    expect(await ask(fixed(8), 'key', 1)).toEqual({ allowed: true, remaining: 2 })
    expect(await ask(fixed(3), 'key', 1)).toEqual({ allowed: false, remaining: 0 })
    expect(await ask(fixed(7), 'key', 1)).toEqual({ allowed: true, remaining: 0 })
  })

  storeTest(
    harness,
    { title: 'a rule that changes its kind of algorithm starts afresh' },
    async ({ ask }: StoreFixture) => {
      const kinds = [
        compileRule('rule', { algorithm: 'token-bucket', capacity: 5, refillPerSecond: 1e-6 }),
        compileRule('rule', { algorithm: 'sliding-window-counter', limit: 5, window: '52w' }),
        compileRule('rule', { algorithm: 'fixed-window', limit: 5, window: '52w' }),
        compileRule('rule', { algorithm: 'fixed-window', limit: 5, window: '52w', rollover: true }),
      ]
      for (const [limit] of kinds) expect(await ask(limit!, 'key', 4)).toEqual({ allowed: true, remaining: 1 })
      for (const [limit] of kinds) expect(await ask(limit!, 'key', 2)).toMatchObject({ allowed: false })
    },
  )
}
