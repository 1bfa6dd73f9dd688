import type { Denied, Reservation } from '@sluice/core'
import { describe, expect } from 'vitest'
import type { StoreHarness } from './store-fixture.ts'
import { EVERY_ALGORITHM, needsOf, storeTest } from './store-test.ts'

/** The reservation, which must have been granted. */
function granted(answer: Reservation | Denied): Reservation {
  if (!answer.allowed) throw new Error(`the reservation was denied: ${answer.reason}`)
  return answer
}

/** Units taken in advance, and slots held. */
export function reservationTests(harness: StoreHarness): void {
  describe('a reservation', () => {
    for (const { algorithm, rule } of EVERY_ALGORITHM) {
      const needs = ['reservations' as const, ...needsOf(algorithm)]
      storeTest(harness, { title: `${algorithm}: release gives it back, once`, needs }, async ({ limiter }) => {
        const six = limiter(rule)
        await six.check('key', { cost: 1 })
        const reservation = granted(await six.reserve('key', { cost: 4 }))
        expect(reservation.decision).toMatchObject({ allowed: true, cost: 4, remaining: 1 })
        expect(await six.reserve('key', { cost: 2 })).toMatchObject({ allowed: false, reason: 'limit' })
        expect(await reservation.release()).toEqual({ outcome: 'settled', corrected: -4 })
        expect(await reservation.release()).toEqual({ outcome: 'settled', corrected: -4 })
        expect(await reservation.settle(1)).toEqual({ outcome: 'settled', corrected: -4 })
        expect(await six.peek('key')).toMatchObject({ remaining: 5 })
      })
    }

    const rule = { algorithm: 'fixed-window', limit: 10, window: '52w' } as const
    const needs = ['reservations'] as const
    const timed = ['reservations', 'controlled-time'] as const

    storeTest(harness, { title: 'settles at what was really used, below or above', needs }, async ({ limiter }) => {
      const ten = limiter(rule)
      const less = granted(await ten.reserve('key', { cost: 5 }))
      expect(await less.settle(2)).toEqual({ outcome: 'settled', corrected: -3 })
      expect(await ten.peek('key')).toMatchObject({ remaining: 8 })
      const more = granted(await ten.reserve('key', { cost: 2 }))
      expect(await more.settle(9)).toEqual({ outcome: 'settled', corrected: 7 })
      // 11 of 10 are used: it did happen, and the next caller feels it.
      expect(await ten.peek('key')).toMatchObject({ allowed: false, remaining: 0 })
    })

    storeTest(harness, { title: 'of nothing can be settled at something', needs }, async ({ limiter }) => {
      const ten = limiter(rule)
      const open = granted(await ten.reserve('key', { cost: 0 }))
      expect(await open.settle(3)).toEqual({ outcome: 'settled', corrected: 3 })
      expect(await ten.peek('key')).toMatchObject({ remaining: 7 })
    })

    storeTest(harness, { title: 'gives itself back when its time is over', needs: timed }, async (fixture) => {
      const ten = fixture.limiter(rule)
      granted(await ten.reserve('key', { cost: 4, expiresAfter: '10s' }))
      const kept = granted(await ten.reserve('key', { cost: 2, expiresAfter: '10s' }))
      expect(await kept.settle(2)).toEqual({ outcome: 'settled', corrected: 0 })
      await fixture.advance(9_999)
      expect(await ten.peek('key')).toMatchObject({ remaining: 4 })
      await fixture.advance(1)
      expect(await ten.peek('key')).toMatchObject({ remaining: 8 })
      await fixture.advance(60_000)
      expect(await ten.peek('key')).toMatchObject({ remaining: 8 })
    })

    storeTest(harness, { title: 'settled too late is charged again', needs: timed }, async (fixture) => {
      const ten = fixture.limiter(rule)
      const late = granted(await ten.reserve('key', { cost: 4, expiresAfter: '10s' }))
      const forgotten = granted(await ten.reserve('key', { cost: 3, expiresAfter: '10s' }))
      await fixture.advance(10_000)
      expect(await late.settle(6)).toEqual({ outcome: 'late', corrected: 6 })
      expect(await late.settle(6)).toEqual({ outcome: 'late', corrected: 6 })
      expect(await forgotten.release()).toEqual({ outcome: 'late', corrected: 0 })
      expect(await ten.peek('key')).toMatchObject({ remaining: 4 })
    })

    storeTest(harness, { title: 'many run out in the order of their times', needs: timed }, async (fixture) => {
      const ten = fixture.limiter({ ...rule, limit: 1000 })
      const seconds = [7, 3, 9, 1, 5, 8, 2, 6, 4, 10]
      for (const second of seconds) granted(await ten.reserve('key', { cost: second, expiresAfter: `${second}s` }))
      let left = 1000 - 55
      for (let second = 1; second <= 10; second++) {
        await fixture.advance(1000)
        left += second
        expect(await ten.peek('key')).toMatchObject({ remaining: left })
      }
    })

    storeTest(harness, { title: 'is released by `await using`', needs }, async ({ limiter }) => {
      const ten = limiter(rule)
      {
        await using reservation = granted(await ten.reserve('key', { cost: 4 }))
        expect(reservation.allowed).toBe(true)
      }
      expect(await ten.peek('key')).toMatchObject({ remaining: 10 })
    })

    storeTest(harness, { title: 'is not refunded besides', needs }, async ({ limiter }) => {
      const ten = limiter(rule)
      const { decision } = granted(await ten.reserve('key', { cost: 4 }))
      const refund = async (): Promise<unknown> => await ten.refund(decision)
      await expect(refund()).rejects.toEqual(expect.objectContaining({ code: 'SLUICE_UNSUPPORTED' }))
    })

    storeTest(harness, { title: 'does not reach a later window', needs: timed }, async (fixture) => {
      const ten = fixture.limiter({ ...rule, window: '1m' })
      const reservation = granted(await ten.reserve('key', { cost: 4, expiresAfter: '1h' }))
      await fixture.advance(60_000)
      await ten.check('key', { cost: 9 })
      expect(await reservation.release()).toEqual({ outcome: 'settled', corrected: 0 })
      expect(await ten.peek('key')).toMatchObject({ remaining: 1 })
    })
  })

  describe('a slot', () => {
    const rule = { algorithm: 'concurrency', limit: 2, lease: '10s' } as const
    const needs = ['long-states'] as const
    const timed = ['long-states', 'controlled-time'] as const

    storeTest(harness, { title: 'is held until it is released', needs }, async ({ limiter }) => {
      const two = limiter(rule)
      const first = granted(await two.reserve('key'))
      granted(await two.reserve('key'))
      expect(await two.reserve('key')).toMatchObject({ allowed: false, reason: 'limit', remaining: 0 })
      expect(await first.release()).toEqual({ outcome: 'settled', corrected: -1 })
      granted(await two.reserve('key'))
      expect(await two.tryAcquire('key')).toBe(false)
    })

    storeTest(harness, { title: 'of a holder that died comes back with its lease', needs: timed }, async (fixture) => {
      const two = fixture.limiter(rule)
      granted(await two.reserve('key'))
      await fixture.advance(4_000)
      const second = granted(await two.reserve('key'))
      expect(await two.reserve('key')).toMatchObject({ allowed: false, retryAfterMs: 6_000 })
      await fixture.advance(5_999)
      expect(await two.tryAcquire('key')).toBe(false)
      await fixture.advance(1)
      expect(await two.peek('key')).toMatchObject({ remaining: 1 })
      await fixture.advance(4_000)
      expect(await second.renew()).toEqual({ outcome: 'gone', corrected: 0 })
      expect(await second.release()).toEqual({ outcome: 'gone', corrected: 0 })
      expect(await two.peek('key')).toMatchObject({ remaining: 2 })
    })

    storeTest(harness, { title: 'is kept by renewing it', needs: timed }, async (fixture) => {
      const two = fixture.limiter(rule)
      const slot = granted(await two.reserve('key', { cost: 2 }))
      for (let beat = 0; beat < 5; beat++) {
        await fixture.advance(9_999)
        expect(await slot.renew()).toEqual({ outcome: 'settled', corrected: 0 })
        expect(await two.tryAcquire('key')).toBe(false)
      }
      await fixture.advance(10_000)
      expect(await two.peek('key')).toMatchObject({ remaining: 2 })
    })

    storeTest(harness, { title: 'is not released by another holder', needs }, async ({ limiter }) => {
      const two = limiter(rule)
      const first = granted(await two.reserve('key'))
      await first.release()
      const second = granted(await two.reserve('key', { cost: 2 }))
      expect(await first.renew()).toEqual({ outcome: 'settled', corrected: -1 })
      expect(await two.peek('key')).toMatchObject({ remaining: 0 })
      expect(await second.release()).toEqual({ outcome: 'settled', corrected: -2 })
    })

    storeTest(harness, { title: 'taken by check is given back by refund', needs }, async ({ limiter }) => {
      const two = limiter(rule)
      const decision = await two.check('key')
      await two.check('key')
      expect(await two.tryAcquire('key')).toBe(false)
      expect(await two.refund(decision)).toEqual({ outcome: 'settled', corrected: -1 })
      expect(await two.tryAcquire('key')).toBe(true)
    })
  })
}
