import { memoryStore } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { FakeClock } from '../../fakes/fake-clock.ts'
import { FakeTimers } from '../../fakes/fake-timers.ts'
import type { MiddlewareHarness, SuiteAnswer, SuiteCall } from './middleware-fixture.ts'
import { openFixture, Turnstile, watchedStore } from './middleware-fixture.ts'

const YEAR = { algorithm: 'fixed-window', window: '52w' } as const

/** Handlers that wait at `/slow`, and in the middle of `/stream`, until they are let go. */
function waitingHandlers() {
  const [arrived, letGo] = [new Turnstile(), new Turnstile()]
  async function* pieces() {
    yield 'first'
    arrived.pass()
    await letGo.passed()
    yield 'last'
  }
  const handle = async ({ path }: SuiteCall): Promise<SuiteAnswer> => {
    if (path === '/stream') return { status: 200, body: pieces() }
    if (path === '/slow') {
      arrived.pass()
      await letGo.passed()
    }
    return { status: path === '/fail' ? 500 : 200, body: 'ok' }
  }
  return { arrived, letGo, handle }
}

/** What requests cost, and what becomes of that when they have ended. */
export function chargeTests(harness: MiddlewareHarness): void {
  describe('the cost of a request', () => {
    it('is a number', async () => {
      const fixture = await openFixture(harness, { limiters: [{ ...YEAR, limit: 10, cost: 4 }] })
      const answers = [await fixture.get('/ok'), await fixture.get('/ok'), await fixture.get('/ok')]
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
      expect(answers.map(({ headers }) => headers['x-ratelimit-remaining'])).toEqual(['6', '2', '2'])
    })

    it.each([
      ['at once', (_context: unknown, request: { header(name: string): unknown }) => Number(request.header('x-cost'))],
      [
        'later',
        (_context: unknown, request: { header(name: string): unknown }) =>
          Promise.resolve(Number(request.header('x-cost'))),
      ],
    ])('is said by a function, %s', async (_when, cost) => {
      const fixture = await openFixture(harness, { limiters: [{ ...YEAR, limit: 10, cost }] })
      const left = async (units: number) =>
        (await fixture.get('/ok', { headers: { 'x-cost': String(units) } })).headers['x-ratelimit-remaining']
      expect([await left(7), await left(0), await left(3)]).toEqual(['3', '3', '0'])
    })

    it('that can never be met is denied without a time to come back', async () => {
      const fixture = await openFixture(harness, { limiters: [{ ...YEAR, limit: 10, cost: () => 11 }] })
      const { status, headers, body } = await fixture.get('/ok')
      expect(status).toBe(429)
      expect(headers).not.toHaveProperty('retry-after')
      expect(JSON.parse(body)).toMatchObject({ retryAfter: null, title: 'The request costs more than the limit' })
    })
  })

  describe('when a request has ended', () => {
    it('its charge is given back for the statuses that say so', async () => {
      const { store, settled } = watchedStore(memoryStore())
      const fixture = await openFixture(harness, { limiters: [{ ...YEAR, limit: 2, refund: [500], store }] })
      for (let call = 0; call < 3; call++) {
        expect(await fixture.get('/fail')).toMatchObject({ status: 500, headers: { 'x-ratelimit-remaining': '1' } })
        await settled.passed()
      }
      expect((await fixture.get('/ok')).headers['x-ratelimit-remaining']).toBe('1')
      expect((await fixture.get('/ok')).headers['x-ratelimit-remaining']).toBe('0')
      expect((await fixture.get('/ok')).status).toBe(429)
    })

    it('its charge is given back when the handler threw, if that is a 500', async () => {
      const { store, settled } = watchedStore(memoryStore())
      const fixture = await openFixture(harness, {
        limiters: [{ ...YEAR, limit: 2, refund: [500], store }],
        handle: () => Promise.reject(new Error('thrown by the handler, on purpose')),
      })
      for (let call = 0; call < 3; call++) {
        expect(await fixture.get('/ok')).toMatchObject({ status: 500, headers: { 'x-ratelimit-remaining': '1' } })
        await settled.passed()
      }
    })

    it.each([
      ['less', 2, '3'],
      ['more', 8, '0'],
      ['no other', undefined, '0'],
    ])('its charge is changed to what it really cost: %s than was thought', async (_what, actual, left) => {
      const { store, settled } = watchedStore(memoryStore())
      const statuses: number[] = []
      const actualCost = (_context: unknown, status: number) => {
        statuses.push(status)
        // The second request is never settled, so that what is left is due to the first.
        if (statuses.length === 1 && actual === undefined) settled.pass()
        return statuses.length === 1 ? actual : undefined
      }
      const fixture = await openFixture(harness, { limiters: [{ ...YEAR, limit: 10, cost: 5, actualCost, store }] })
      expect((await fixture.get('/ok')).headers['x-ratelimit-remaining']).toBe('5')
      await settled.passed()
      expect(statuses).toEqual([200])
      const next = await fixture.get('/ok')
      expect(next.status).toBe(actual === 8 ? 429 : 200)
      expect(next.headers['x-ratelimit-remaining']).toBe(actual === 8 ? '2' : left)
    })
  })

  describe('a slot', () => {
    const one = { algorithm: 'concurrency', limit: 1, lease: '1m' } as const

    it('is taken until the answer has left', async () => {
      const { store, settled } = watchedStore(memoryStore())
      const { arrived, letGo, handle } = waitingHandlers()
      const fixture = await openFixture(harness, { limiters: [{ ...one, store }], handle })
      const slow = fixture.send('/slow')
      await arrived.passed()
      expect((await fixture.get('/ok')).status).toBe(429)
      letGo.pass()
      expect((await slow.answer).status).toBe(200)
      await settled.passed()
      expect((await fixture.get('/ok')).status).toBe(200)
      await settled.passed()
    })

    it('is taken until the last piece of the answer has left', async () => {
      const { store, settled } = watchedStore(memoryStore())
      const { arrived, letGo, handle } = waitingHandlers()
      const fixture = await openFixture(harness, { limiters: [{ ...one, store }], handle })
      const stream = fixture.send('/stream')
      expect(await stream.firstPiece).toBe('first')
      await arrived.passed()
      expect((await fixture.get('/ok')).status).toBe(429)
      letGo.pass()
      expect(await stream.answer).toMatchObject({ status: 200, body: 'firstlast' })
      await settled.passed()
      expect((await fixture.get('/ok')).status).toBe(200)
      await settled.passed()
    })

    it.each(['/slow', '/stream'])('is free again when the client of %s has hung up', async (path) => {
      const { store, settled } = watchedStore(memoryStore())
      const { arrived, letGo, handle } = waitingHandlers()
      const fixture = await openFixture(harness, { limiters: [{ ...one, store }], handle })
      const slow = fixture.send(path)
      await arrived.passed()
      expect((await fixture.get('/ok')).status).toBe(429)
      slow.hangUp()
      await settled.passed()
      expect((await fixture.get('/ok')).status).toBe(200)
      await settled.passed()
      letGo.pass()
    })

    it('is free again when the handler threw', async () => {
      const { store, settled } = watchedStore(memoryStore())
      const fixture = await openFixture(harness, {
        limiters: [{ ...one, store }],
        handle: () => Promise.reject(new Error('thrown by the handler, on purpose')),
      })
      for (let call = 0; call < 2; call++) {
        expect((await fixture.get('/ok')).status).toBe(500)
        await settled.passed()
      }
    })
  })

  describe('a turn in a queue', () => {
    const queue = { algorithm: 'leaky-bucket-queue', capacity: 2, ratePerSecond: 2 } as const

    /** Timers that tell when something waits, and when it waits no more. */
    function fixture() {
      const clock = new FakeClock()
      const timers = new FakeTimers(clock)
      const [waiting, left] = [new Turnstile(), new Turnstile()]
      const watched = {
        schedule(delayMs: number, run: () => void) {
          const cancel = timers.schedule(delayMs, run)
          waiting.pass()
          return () => {
            cancel()
            left.pass()
          }
        },
      }
      const limiter = { ...queue, clock, timers: watched, store: memoryStore({ clock }) }
      return { timers, waiting, left, limiter }
    }

    it('is waited for before the handler is called, and a full queue denies', async () => {
      const { timers, waiting, limiter } = fixture()
      const served = await openFixture(harness, { limiters: [limiter] })
      expect((await served.get('/ok')).status).toBe(200)
      const second = served.send('/ok')
      await waiting.passed()
      expect((await served.get('/ok')).status).toBe(429)
      await timers.advance(499)
      expect(served.calls).toHaveLength(1)
      await timers.advance(1)
      expect((await second.answer).status).toBe(200)
      expect(served.calls).toHaveLength(2)
      expect(timers.pending).toBe(0)
    })

    it('is given up when the client hangs up', async () => {
      const { timers, waiting, left, limiter } = fixture()
      const served = await openFixture(harness, { limiters: [limiter] })
      await served.get('/ok')
      const second = served.send('/ok')
      await waiting.passed()
      second.hangUp()
      await left.passed()
      expect(timers.pending).toBe(0)
      await timers.advance(1_000)
      expect(served.calls).toHaveLength(1)
    })
  })
}
