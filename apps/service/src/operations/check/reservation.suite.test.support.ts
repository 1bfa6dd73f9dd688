import type { RuleSet } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import type { CheckApi, OpenStore } from './check-api.test.support.ts'
import { perUser, withStore, wrongPaths } from './check-api.test.support.ts'

const ORDER = { userId: 'ann', resource: '/orders' }

/** Two jobs at once for each tenant, and ten a minute. */
const JOBS: RuleSet = {
  rules: [
    { resource: '/jobs', dimension: 'tenant', algorithm: 'concurrency', limit: 2, lease: '30s' },
    { resource: '/jobs', dimension: 'user', algorithm: 'fixed-window', limit: 10, window: '1m' },
  ],
}

const JOB = { tenantId: 'acme', userId: 'ann', resource: '/jobs' }

async function reserve(api: CheckApi, body: object): Promise<string> {
  const answer = await api.post('reserve', body)
  expect(answer.status).toBe(200)
  return String(answer.body['reservationId'])
}

async function acquire(api: CheckApi, body: object = JOB): Promise<string> {
  const answer = await api.post('acquire', body)
  expect(answer.status).toBe(200)
  return String(answer.body['reservationId'])
}

/** The check API on a store: reservations and slots. Every reservation is also ended by another process. */
export function reservationSuite(name: string, open: OpenStore): void {
  describe(`reservations ${name}`, () => {
    it('are answered as a check, with an id and when they end', () =>
      withStore(open, async ({ api }) => {
        const answer = await api({ ruleSet: perUser(100) }).post('reserve', { ...ORDER, tokens: 40 })
        const { reservationId, ...body } = answer.body
        expect(reservationId).toMatch(/^r1\.[\w-]+\.[\w-]{43}$/)
        expect(answer).toMatchObject({ status: 200, headers: { 'X-RateLimit-Remaining': '60' } })
        expect(body).toEqual({
          allowed: true,
          reason: 'allowed',
          limit: 100,
          remaining: 60,
          resetAt: '2030-01-01T00:01:00Z',
          retryAfter: null,
          dimension: 'user',
          rule: '/orders@user',
          decisionId: '1',
          version: 0,
          expiresAt: '2030-01-01T00:01:00.000Z',
        })
      }))

    it('that are denied are answered like a denied check, without an id', () =>
      withStore(open, async ({ api }) => {
        const reservations = api({ ruleSet: perUser(100) })
        await reserve(reservations, { ...ORDER, tokens: 40 })
        const answer = await reservations.post('reserve', { ...ORDER, tokens: 61 })
        expect(answer).toMatchObject({ status: 429, body: { allowed: false, reason: 'limit', remaining: 60 } })
        expect(Object.keys(answer.body)).not.toContain('reservationId')
        expect(answer.headers['Cache-Control']).toBe('no-store')
      }))

    it.each([
      ['less than was reserved', 15, -25, 85],
      ['all of it', 40, 0, 60],
      ['more than was reserved', 70, 30, 30],
      ['nothing', 0, -40, 100],
    ])('are settled at %s', (_what, tokens, corrected, remaining) =>
      withStore(open, async ({ api }) => {
        const [here, there] = [api({ ruleSet: perUser(100) }), api()]
        const reservationId = await reserve(here, { ...ORDER, tokens: 40 })
        const answer = await there.post('settle', { reservationId, tokens })
        expect(answer).toEqual({ status: 200, headers: {}, body: { outcome: 'settled', corrected } })
        expect(await here.remaining(ORDER)).toBe(remaining)
      }),
    )

    it('are settled in the unit of the request where a rule counts several for each', () =>
      withStore(open, async ({ api }) => {
        const rules: RuleSet['rules'] = [
          { resource: '/orders', dimension: 'user', algorithm: 'fixed-window', limit: 100, window: '1m', cost: 5 },
        ]
        const reservations = api({ ruleSet: { rules } })
        const reservationId = await reserve(reservations, { ...ORDER, tokens: 10 })
        expect(await reservations.remaining(ORDER)).toBe(50)
        expect((await reservations.post('settle', { reservationId, tokens: 4 })).body).toEqual({
          outcome: 'settled',
          corrected: -30,
        })
        expect(await reservations.remaining(ORDER)).toBe(80)
      }))

    it('are released: all of it is given back', () =>
      withStore(open, async ({ api }) => {
        const [here, there] = [api({ ruleSet: perUser(100) }), api()]
        const reservationId = await reserve(here, { ...ORDER, tokens: 40 })
        expect(await there.post('release', { reservationId })).toEqual({
          status: 200,
          headers: {},
          body: { outcome: 'settled', corrected: -40 },
        })
        expect(await here.remaining(ORDER)).toBe(100)
      }))

    it('are ended once: whatever comes after gets the first answer and changes nothing', () =>
      withStore(open, async ({ api }) => {
        const reservations = api({ ruleSet: perUser(100) })
        const reservationId = await reserve(reservations, { ...ORDER, tokens: 40 })
        const first = await reservations.post('settle', { reservationId, tokens: 15 })
        expect(await reservations.post('settle', { reservationId, tokens: 15 })).toEqual(first)
        expect(await reservations.post('settle', { reservationId, tokens: 90 })).toEqual(first)
        expect(await reservations.post('release', { reservationId })).toEqual(first)
        expect(await reservations.remaining(ORDER)).toBe(85)
      }))

    it('are ended once by all processes: one that comes again elsewhere changes nothing, early or late', () =>
      withStore(open, async ({ api, clock, store }) => {
        const rules: RuleSet['rules'] = [
          { resource: '/orders', dimension: 'user', algorithm: 'fixed-window', limit: 100, window: '1d' },
        ]
        // Threads of one process ask the one that handed it out; without a shared store there are no other processes.
        const here = api({ ruleSet: { rules } })
        const there = store.mode === 'async' ? api() : here
        const [early, late] = [
          await reserve(here, { ...ORDER, tokens: 40 }),
          await reserve(here, { ...ORDER, tokens: 9 }),
        ]
        const first = await here.post('settle', { reservationId: early, tokens: 15 })
        const again = store.mode === 'async' ? { ...first, body: { outcome: 'settled', corrected: 0 } } : first
        expect(await there.post('settle', { reservationId: early, tokens: 15 })).toEqual(again)
        expect(await there.post('release', { reservationId: early })).toEqual(again)
        expect(await here.remaining(ORDER)).toBe(76)
        clock.advance(60_000 + 3_600_000 - 1)
        expect((await there.post('settle', { reservationId: late, tokens: 7 })).body['outcome']).toBe('late')
        await here.post('settle', { reservationId: late, tokens: 7 })
        if (store.mode === 'async') await api().post('settle', { reservationId: early, tokens: 50 })
        expect(await here.remaining(ORDER)).toBe(78)
      }))

    it('that are neither settled nor released expire after a minute, or after their own time', () =>
      withStore(open, async ({ api, clock }) => {
        const rules: RuleSet['rules'] = [
          { resource: '/orders', dimension: 'user', algorithm: 'fixed-window', limit: 100, window: '1d' },
        ]
        const reservations = api({ ruleSet: { rules } })
        await reserve(reservations, { ...ORDER, tokens: 40 })
        const short = await reservations.post('reserve', { ...ORDER, tokens: 5, expiresAfterMs: 1500 })
        expect(short.body['expiresAt']).toBe('2030-01-01T00:00:01.500Z')
        clock.advance(1499)
        expect(await reservations.remaining(ORDER)).toBe(55)
        clock.advance(1)
        expect(await reservations.remaining(ORDER)).toBe(60)
        clock.advance(58_499)
        expect(await reservations.remaining(ORDER)).toBe(60)
        clock.advance(1)
        expect(await reservations.remaining(ORDER)).toBe(100)
      }))

    it('that are settled late are charged again, and no more when they have been over for an hour', () =>
      withStore(open, async ({ api, clock }) => {
        const rules: RuleSet['rules'] = [
          { resource: '/orders', dimension: 'user', algorithm: 'fixed-window', limit: 100, window: '1d' },
        ]
        const [here, there] = [api({ ruleSet: { rules } }), api()]
        const one = await reserve(here, { ...ORDER, tokens: 40 })
        const other = await reserve(here, { ...ORDER, tokens: 40 })
        clock.advance(60_000 + 3_600_000 - 1)
        expect((await here.post('settle', { reservationId: one, tokens: 7 })).body).toEqual({
          outcome: 'late',
          corrected: 7,
        })
        clock.advance(1)
        const answer = await there.post('settle', { reservationId: other, tokens: 7 })
        expect(answer).toMatchObject({ status: 400, body: { code: 'SLUICE_HTTP_INVALID_REQUEST' } })
        expect(answer.body['errors']).toEqual([
          {
            path: '/reservationId',
            received: 'a reservation that expired at 2030-01-01T00:01:00.000Z',
            expected: 'one that expired less than 60 minutes ago; charge the usage with a check instead',
          },
        ])
        expect(await here.remaining(ORDER)).toBe(93)
      }))

    it('are all or nothing: a caller denied by one limit reserves nothing of the others', () =>
      withStore(open, async ({ api }) => {
        const rules: RuleSet['rules'] = [
          { resource: '*', dimension: 'user', algorithm: 'fixed-window', limit: 100, window: '1m' },
          { resource: '*', dimension: 'tenant', algorithm: 'fixed-window', limit: 50, window: '1m' },
        ]
        const reservations = api({ ruleSet: { rules } })
        const call = { ...ORDER, tenantId: 'acme' }
        const reservationId = await reserve(reservations, { ...call, tokens: 40 })
        expect(await reservations.post('reserve', { ...call, tokens: 11 })).toMatchObject({
          status: 429,
          body: { dimension: 'tenant', remaining: 10 },
        })
        expect(await reservations.remaining(ORDER)).toBe(60)
        expect((await reservations.post('settle', { reservationId, tokens: 10 })).body['corrected']).toBe(-60)
        expect(await reservations.remaining(ORDER)).toBe(90)
        expect(await reservations.remaining(call)).toBe(40)
      }))

    it.each([
      ['fixed window', { algorithm: 'fixed-window', limit: 100, window: '1m' }],
      [
        'calendar window',
        { algorithm: 'fixed-window', limit: 100, window: { calendar: 'day', timeZone: 'Asia/Tokyo' } },
      ],
      ['sliding window counter', { algorithm: 'sliding-window-counter', limit: 100, window: '1m' }],
      ['sliding window with segments', { algorithm: 'sliding-window-log', limit: 100, window: '1m', segments: 6 }],
      ['exact log', { algorithm: 'sliding-window-log', limit: 20, window: '1m' }],
      ['GCRA', { algorithm: 'gcra', limit: 100, window: '1m' }],
      ['token bucket', { algorithm: 'token-bucket', capacity: 100, refillPerSecond: 0.1 }],
      ['meter', { algorithm: 'leaky-bucket-meter', capacity: 100, leakPerSecond: 0.1 }],
      ['hybrid', { algorithm: 'hybrid', limit: 100, window: '1m', burst: { capacity: 10, refillPerSecond: 0.1 } }],
      ['window with a burst', { algorithm: 'fixed-window', limit: 100, window: '1m', burst: 120 }],
    ] as const)('under a %s are settled exactly by another process', (_what, algorithm) =>
      withStore(open, async ({ api }) => {
        const rules = [{ resource: '/orders', dimension: 'user', ...algorithm }]
        const [here, there] = [api({ ruleSet: { rules } }), api()]
        const full = await here.remaining(ORDER)
        const reservationId = await reserve(here, { ...ORDER, tokens: 15 })
        expect((await there.post('settle', { reservationId, tokens: 4 })).body).toEqual({
          outcome: 'settled',
          corrected: -11,
        })
        expect(await here.remaining(ORDER)).toBe(Number(full) - 4)
      }),
    )

    it('of a call that nothing limits hold nothing, and do not end', () =>
      withStore(open, async ({ api }) => {
        const reservations = api({ ruleSet: perUser(1) })
        const answer = await reservations.post('reserve', { resource: '/free', tokens: 40 })
        expect(answer.body).toMatchObject({ reason: 'unlimited', limit: null, expiresAt: null })
        const { reservationId } = answer.body
        const nothing = { outcome: 'settled', corrected: 0 }
        expect((await reservations.post('settle', { reservationId, tokens: 3 })).body).toEqual(nothing)
        expect((await reservations.post('release', { reservationId })).body).toEqual(nothing)
      }))

    it('whose id would be too long are given back', () =>
      withStore(open, async ({ api }) => {
        const names = Array.from({ length: 8 }, (_, index) => `part${index}`)
        const rules = names.map((dimension) => {
          return { resource: '/orders', dimension, algorithm: 'fixed-window', limit: 9, window: '1m' } as const
        })
        const call = {
          resource: '/orders',
          descriptors: Object.fromEntries(names.map((part) => [part, part + '語'.repeat(500)])),
        }
        const reservations = api({ ruleSet: { rules } })
        const answer = await reservations.post('reserve', call)
        expect(answer).toMatchObject({ status: 400, body: { code: 'SLUICE_HTTP_INVALID_REQUEST' } })
        expect(await reservations.remaining(call)).toBe(9)
      }))
  })

  describe(`slots ${name}`, () => {
    it('are answered as a check, with an id, when they end, and for how long they are held', () =>
      withStore(open, async ({ api }) => {
        const answer = await api({ ruleSet: JOBS }).post('acquire', JOB)
        expect(answer).toMatchObject({
          status: 200,
          body: { allowed: true, limit: 2, remaining: 1, expiresAt: '2030-01-01T00:00:30.000Z', leaseMs: 30_000 },
        })
      }))

    it('are not handed out beyond the limit, and are there again when one is released by another process', () =>
      withStore(open, async ({ api }) => {
        const [here, there] = [api({ ruleSet: JOBS }), api()]
        const first = await acquire(here)
        await acquire(here)
        const denied = await here.post('acquire', JOB)
        expect(denied).toMatchObject({
          status: 429,
          headers: { 'Retry-After': '30', 'Cache-Control': 'no-store' },
          body: { allowed: false, reason: 'limit', dimension: 'tenant', rule: '/jobs@tenant' },
        })
        expect((await there.post('release', { reservationId: first })).body).toEqual({
          outcome: 'settled',
          corrected: -1,
        })
        await acquire(here)
      }))

    it('keep what was charged besides them when they are released: it took place', () =>
      withStore(open, async ({ api }) => {
        const slots = api({ ruleSet: JOBS })
        const reservationId = await acquire(slots)
        await slots.post('release', { reservationId })
        expect(await slots.remaining({ userId: 'ann', resource: '/jobs' })).toBe(9)
      }))

    it('are settled at what was used besides them, and an id that comes twice gives nothing back twice', () =>
      withStore(open, async ({ api }) => {
        const [here, there] = [api({ ruleSet: JOBS }), api()]
        await here.admitted(3, { userId: 'ann', resource: '/jobs' })
        const reservationId = await acquire(here)
        const user = { userId: 'ann', resource: '/jobs' }
        expect(await here.remaining(user)).toBe(6)
        expect((await here.post('settle', { reservationId, tokens: 0 })).body).toEqual({
          outcome: 'settled',
          corrected: -2,
        })
        expect(await here.remaining(user)).toBe(7)
        expect((await there.post('settle', { reservationId, tokens: 0 })).body).toEqual({
          outcome: 'gone',
          corrected: 0,
        })
        expect((await there.post('release', { reservationId })).body).toEqual({ outcome: 'gone', corrected: 0 })
        expect(await here.remaining(user)).toBe(7)
      }))

    it('of a holder that says nothing come back when the lease ends', () =>
      withStore(open, async ({ api, clock }) => {
        const slots = api({ ruleSet: JOBS })
        await acquire(slots)
        await acquire(slots)
        clock.advance(29_999)
        expect((await slots.post('acquire', JOB)).status).toBe(429)
        clock.advance(1)
        await acquire(slots)
      }))

    it('are kept by heartbeats, also through another process', () =>
      withStore(open, async ({ api, clock }) => {
        const [here, there] = [api({ ruleSet: JOBS }), api()]
        const reservationId = await acquire(here)
        await acquire(here)
        clock.advance(20_000)
        expect(await there.post('heartbeat', { reservationId })).toEqual({
          status: 200,
          headers: {},
          body: { outcome: 'renewed', expiresAt: '2030-01-01T00:00:50.000Z', leaseMs: 30_000 },
        })
        clock.advance(29_999)
        // The other slot has run out, this one has not.
        await acquire(here)
        expect((await here.post('acquire', JOB)).status).toBe(429)
        expect((await here.post('heartbeat', { reservationId })).body['outcome']).toBe('renewed')
        clock.advance(29_999)
        expect((await there.post('heartbeat', { reservationId })).body['outcome']).toBe('renewed')
      }))

    it('are kept for as long as there are heartbeats, and then gone', () =>
      withStore(open, async ({ api, clock }) => {
        const slots = api({ ruleSet: JOBS })
        const reservationId = await acquire(slots)
        for (let beat = 0; beat < 300; beat++) {
          clock.advance(29_000)
          expect((await slots.post('heartbeat', { reservationId })).body['outcome']).toBe('renewed')
        }
        clock.advance(30_000)
        expect((await slots.post('heartbeat', { reservationId })).body['outcome']).toBe('gone')
        expect((await slots.post('release', { reservationId })).body['outcome']).toBe('gone')
      }))

    it('of several rules are held for the shortest of their leases', () =>
      withStore(open, async ({ api, clock }) => {
        const rules: RuleSet['rules'] = [
          { resource: '/jobs', dimension: 'tenant', algorithm: 'concurrency', limit: 2, lease: '30s' },
          { resource: '/jobs', dimension: 'user', algorithm: 'concurrency', limit: 2, lease: '10s' },
        ]
        const slots = api({ ruleSet: { rules } })
        const { body } = await slots.post('acquire', JOB)
        expect(body).toMatchObject({ leaseMs: 10_000, expiresAt: '2030-01-01T00:00:10.000Z' })
        clock.advance(10_000)
        const { reservationId } = body
        expect((await slots.post('heartbeat', { reservationId })).body['outcome']).toBe('gone')
      }))

    it('that have run out are gone, for heartbeats and for releases', () =>
      withStore(open, async ({ api, clock }) => {
        const [here, there] = [api({ ruleSet: JOBS }), api()]
        const reservationId = await acquire(here)
        clock.advance(30_000)
        await acquire(here)
        await acquire(here)
        const gone = { status: 200, headers: {}, body: { outcome: 'gone', expiresAt: null } }
        expect(await here.post('heartbeat', { reservationId })).toEqual(gone)
        expect(await there.post('heartbeat', { reservationId })).toEqual(gone)
        expect((await there.post('release', { reservationId })).body).toEqual({ outcome: 'gone', corrected: 0 })
        expect((await here.post('acquire', JOB)).status).toBe(429)
      }))

    it('that were released are gone for heartbeats', () =>
      withStore(open, async ({ api }) => {
        const slots = api({ ruleSet: JOBS })
        const reservationId = await acquire(slots)
        await slots.post('release', { reservationId })
        expect((await slots.post('heartbeat', { reservationId })).body['outcome']).toBe('gone')
      }))

    it('that no rule limits are a check: its tokens stand, whatever is said about the slot', () =>
      withStore(open, async ({ api, clock }) => {
        const rules: RuleSet['rules'] = [
          { resource: '/orders', dimension: 'user', algorithm: 'fixed-window', limit: 10, window: '1d' },
        ]
        const slots = api({ ruleSet: { rules } })
        const answer = await slots.post('acquire', { ...ORDER, tokens: 2 })
        expect(answer.body).toMatchObject({ allowed: true, remaining: 8, expiresAt: null })
        expect(Object.keys(answer.body)).not.toContain('leaseMs')
        const { reservationId } = answer.body
        expect((await slots.post('heartbeat', { reservationId })).body).toEqual({ outcome: 'renewed', expiresAt: null })
        expect((await slots.post('release', { reservationId })).body).toEqual({ outcome: 'settled', corrected: 0 })
        await acquire(slots, ORDER)
        clock.advance(7_200_000)
        expect(await slots.remaining(ORDER)).toBe(7)
      }))

    it('can be reserved with units, and then both are given back', () =>
      withStore(open, async ({ api }) => {
        const slots = api({ ruleSet: JOBS })
        const answer = await slots.post('reserve', JOB)
        expect(answer.body).toMatchObject({ expiresAt: '2030-01-01T00:00:30.000Z', leaseMs: 30_000 })
        const { reservationId } = answer.body
        expect((await slots.post('heartbeat', { reservationId })).body['outcome']).toBe('renewed')
        expect((await slots.post('release', { reservationId })).body).toEqual({ outcome: 'settled', corrected: -2 })
        expect(await slots.remaining(JOB)).toBe(2)
        expect(await slots.remaining({ userId: 'ann', resource: '/jobs' })).toBe(10)
      }))

    it('are what heartbeats are for, and not reservations of units', () =>
      withStore(open, async ({ api }) => {
        const reservations = api({ ruleSet: perUser(100) })
        const reservationId = await reserve(reservations, ORDER)
        const answer = await reservations.post('heartbeat', { reservationId })
        expect(answer.status).toBe(400)
        expect(wrongPaths(answer)).toEqual(['/reservationId'])
      }))
  })
}
