import { memoryStore } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { FakeClock } from '../../fakes/fake-clock.ts'
import { deferredStore } from '../../models/reference-store.ts'
import type { MiddlewareHarness, SuiteDecision } from './middleware-fixture.ts'
import { openFixture } from './middleware-fixture.ts'

/** Frameworks add a character set where they write JSON themselves. */
const PROBLEM = expect.stringMatching(/^application\/problem\+json(?:;|$)/)
const PROBLEM_TYPE = 'https://iana.org/assignments/http-problem-types#quota-exceeded'

/** A store whose time stands still, and the clock to move it by. */
function still() {
  const clock = new FakeClock()
  return { clock, store: memoryStore({ clock }) }
}

/** What requests are answered, and what reaches the handlers. */
export function decisionTests(harness: MiddlewareHarness): void {
  describe('a limit', () => {
    it('is one line', async () => {
      const fixture = await openFixture(harness, { limiters: [{ limit: 2, window: '1h' }] })
      expect((await fixture.get('/ok')).status).toBe(200)
      expect((await fixture.get('/ok')).body).toBe('ok')
      expect((await fixture.get('/ok')).status).toBe(429)
      expect(fixture.calls).toHaveLength(2)
    })

    it('is announced on responses, whatever writes them', async () => {
      const fixture = await openFixture(harness, {
        limiters: [{ algorithm: 'fixed-window', limit: 5, window: '1m', ...still() }],
      })
      const nextMinute = String(Date.UTC(2030, 0, 1, 0, 1) / 1000)
      const expected = { 'x-ratelimit-limit': '5', 'x-ratelimit-reset': nextMinute, 'x-ratelimit-reset-after': '60' }
      expect((await fixture.get('/ok')).headers).toMatchObject({ ...expected, 'x-ratelimit-remaining': '4' })
      expect((await fixture.get('/fail')).headers).toMatchObject({ ...expected, 'x-ratelimit-remaining': '3' })
      expect((await fixture.get('/ok')).headers).not.toHaveProperty('retry-after')
    })

    it('is announced by the fields of the draft when wanted, with its window', async () => {
      const fixture = await openFixture(harness, {
        limiters: [
          { algorithm: 'fixed-window', limit: 5, window: '1m', name: 'reads', headers: 'draft-11', ...still() },
        ],
      })
      const { headers } = await fixture.get('/ok')
      expect(headers).toMatchObject({ ratelimit: '"reads";r=4;t=60', 'ratelimit-policy': '"reads";q=5;w=60' })
      expect(headers).not.toHaveProperty('x-ratelimit-limit')
    })

    it('is not announced when that is not wanted, and denials still say when to come back', async () => {
      const fixture = await openFixture(harness, {
        limiters: [{ limit: 1, window: '10s', headers: 'off', ...still() }],
      })
      const names = (received: object) => Object.keys(received).filter((name) => name.includes('ratelimit'))
      expect(names((await fixture.get('/ok')).headers)).toEqual([])
      const denied = await fixture.get('/ok')
      expect(names(denied.headers)).toEqual([])
      expect(denied.headers['retry-after']).toBe('10')
    })

    it.each([
      ['at once', () => memoryStore()],
      ['by promise', () => deferredStore(memoryStore())],
    ])('admits exactly the limit of 200 simultaneous requests, on a store that answers %s', async (_how, create) => {
      const store = create()
      const limiter = { algorithm: 'fixed-window', limit: 50, window: '52w', store } as const
      const fixture = await openFixture(harness, { limiters: [limiter] })
      const answers = await Promise.all(Array.from({ length: 200 }, () => fixture.get('/ok')))
      const allowed = answers.filter(({ status }) => status === 200)
      expect(allowed).toHaveLength(50)
      expect(answers.filter(({ status }) => status === 429)).toHaveLength(150)
      expect(fixture.calls).toHaveLength(50)
      const left = allowed.map(({ headers }) => Number(headers['x-ratelimit-remaining']))
      expect(left.sort((one, other) => one - other)).toEqual(Array.from({ length: 50 }, (_, index) => index))
    })

    it('is available to the handler', async () => {
      const fixture = await openFixture(harness, { limiters: [{ limit: 5, window: '1h', name: 'reads' }] })
      await fixture.get('/ok')
      await fixture.get('/ok')
      expect(fixture.calls.map(({ decision }) => decision)).toMatchObject([
        { allowed: true, rule: 'reads', remaining: 4 },
        { allowed: true, rule: 'reads', remaining: 3 },
      ])
    })

    it('counts HEAD and OPTIONS requests as any other, and denies HEAD without a body', async () => {
      const fixture = await openFixture(harness, { limiters: [{ limit: 3, window: '10s', ...still() }] })
      const head = await fixture.get('/ok', { method: 'HEAD' })
      expect(head).toMatchObject({ status: 200, body: '', headers: { 'x-ratelimit-remaining': '2' } })
      expect((await fixture.get('/ok', { method: 'OPTIONS' })).headers['x-ratelimit-remaining']).toBe('1')
      await fixture.get('/ok')
      const denied = await fixture.get('/ok', { method: 'HEAD' })
      expect(denied).toMatchObject({ status: 429, body: '' })
      expect(denied.headers).toMatchObject({ 'retry-after': '4', 'content-type': PROBLEM })
    })
  })

  describe('a denial', () => {
    it('is a problem document that must not be stored', async () => {
      const fixture = await openFixture(harness, { limiters: [{ limit: 1, window: '10s', name: 'reads', ...still() }] })
      await fixture.get('/ok')
      const { status, headers, body } = await fixture.get('/ok')
      expect(status).toBe(429)
      expect(headers).toMatchObject({
        'content-type': PROBLEM,
        'cache-control': 'no-store',
        'retry-after': '10',
        'x-ratelimit-remaining': '0',
      })
      expect(JSON.parse(body)).toEqual({
        type: PROBLEM_TYPE,
        title: 'Too many requests',
        status: 429,
        detail: 'Try again in 10 seconds.',
        'violated-policies': ['reads'],
        limit: 1,
        remaining: 0,
        resetAt: '2030-01-01T00:00:10Z',
        retryAfter: 10,
      })
      expect(fixture.calls).toHaveLength(1)
    })

    it('says truly when to come back', async () => {
      const { clock, store } = still()
      const fixture = await openFixture(harness, { limiters: [{ limit: 2, window: '9s', clock, store }] })
      await Promise.all([fixture.get('/ok'), fixture.get('/ok')])
      expect((await fixture.get('/ok')).headers['retry-after']).toBe('5')
      clock.advance(4_499)
      expect((await fixture.get('/ok')).headers['retry-after']).toBe('1')
      clock.advance(1)
      expect((await fixture.get('/ok')).status).toBe(200)
      expect((await fixture.get('/ok')).status).toBe(429)
    })

    it('has the status that is wanted', async () => {
      const fixture = await openFixture(harness, { limiters: [{ limit: 0, window: '1h', status: 503 }] })
      const { status, body } = await fixture.get('/ok')
      expect(status).toBe(503)
      expect(JSON.parse(body)).toMatchObject({ status: 503, type: PROBLEM_TYPE })
    })

    it('is answered by a custom handler if set, with the headers of the limit', async () => {
      const fixture = await openFixture(harness, {
        limiters: [{ limit: 0, window: '1h', name: 'reads' }],
        onLimited: (denial) => ({
          status: 418,
          body: `${denial.status} ${(JSON.parse(denial.body) as Record<string, unknown>)['violated-policies']}`,
        }),
      })
      const { status, headers, body } = await fixture.get('/ok')
      expect({ status, body }).toEqual({ status: 418, body: '429 reads' })
      expect(headers).toMatchObject({ 'x-ratelimit-limit': '0', 'cache-control': 'no-store' })
      expect(headers['content-type'] ?? '').not.toContain('problem')
      expect(fixture.calls).toEqual([])
    })
  })

  describe('who is counted', () => {
    const limiter = { limit: 1, window: '1h' } as const

    it.each([
      [
        'at once',
        (_context: unknown, request: { header(name: string): unknown }) => request.header('x-user') as string,
      ],
      [
        'later',
        (_context: unknown, request: { header(name: string): unknown }) =>
          Promise.resolve(request.header('x-user') as string),
      ],
    ])('is said by a function, %s', async (_when, key) => {
      const fixture = await openFixture(harness, { limiters: [{ ...limiter, key }] })
      const as = async (user: string) => (await fixture.get('/ok', { headers: { 'x-user': user } })).status
      expect([await as('a'), await as('b'), await as('a'), await as('b')]).toEqual([200, 200, 429, 429])
    })

    it('is the address when the function returns undefined, whatever a header says', async () => {
      const fixture = await openFixture(harness, { limiters: [{ ...limiter, key: () => undefined }] })
      const from = async (address: string) =>
        (await fixture.get('/ok', { headers: { 'x-forwarded-for': address, forwarded: `for=${address}` } })).status
      expect([await from('192.0.2.1'), await from('192.0.2.2')]).toEqual([200, 429])
    })

    it('is neither counted nor reported when the request is skipped', async () => {
      const skip = (_context: unknown, request: { readonly url: string }) => request.url === '/ok?free=1'
      const fixture = await openFixture(harness, { limiters: [{ ...limiter, skip }] })
      for (let call = 0; call < 3; call++) {
        const { status, headers } = await fixture.get('/ok?free=1')
        expect(status).toBe(200)
        expect(headers).not.toHaveProperty('x-ratelimit-limit')
      }
      expect(fixture.calls.map(({ decision }) => decision)).toEqual([undefined, undefined, undefined])
      expect((await fixture.get('/ok')).status).toBe(200)
      expect((await fixture.get('/ok')).status).toBe(429)
    })
  })

  describe('several rules', () => {
    it('are decided at once: all are charged, or none', async () => {
      const decisions: SuiteDecision[] = []
      const fixture = await openFixture(harness, {
        limiters: [
          {
            rules: {
              everyone: { algorithm: 'fixed-window', limit: 3, window: '52w', key: () => 'all' },
              each: {
                algorithm: 'fixed-window',
                limit: 2,
                window: '52w',
                key: (_context, request) => String(request.header('x-user')),
              },
            },
            headers: 'both',
            onDecision: (decision) => void decisions.push(decision),
          },
        ],
      })
      const as = (user: string) => fixture.get('/ok', { headers: { 'x-user': user } })
      const first = await as('a')
      expect(first.headers).toMatchObject({
        'x-ratelimit-limit': '2',
        'x-ratelimit-remaining': '1',
        'ratelimit-policy': '"everyone";q=3;w=31449600, "each";q=2;w=31449600',
      })
      await as('a')
      const denied = await as('a')
      expect(JSON.parse(denied.body)).toMatchObject({ status: 429, 'violated-policies': ['each'] })
      // The denial of one took nothing of the other: one is left of three.
      expect((await as('b')).headers).toMatchObject({ 'x-ratelimit-remaining': '0', 'x-ratelimit-limit': '3' })
      expect(JSON.parse((await as('c')).body)).toMatchObject({ 'violated-policies': ['everyone'] })
      expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, false, true, false])
    })
  })

  describe('several limiters', () => {
    const narrow = { algorithm: 'fixed-window', limit: 2, window: '52w', name: 'narrow', headers: 'both' } as const
    const wide = { algorithm: 'fixed-window', limit: 10, window: '52w', name: 'wide', headers: 'both' } as const

    it.each([
      ['narrow first', [narrow, wide]],
      ['wide first', [wide, narrow]],
    ])('before one handler announce the narrowest limit, and all of them, %s', async (_order, limiters) => {
      const reason = harness.lacks?.['several-limiters']
      const fixture = await openFixture(harness, { limiters: reason === undefined ? limiters : [narrow] })
      const { headers } = await fixture.get('/ok')
      expect(headers).toMatchObject({ 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '1' })
      if (reason === undefined)
        expect(headers['ratelimit']).toMatch(/"narrow";r=1\b.*"wide";r=9|"wide";r=9\b.*"narrow";r=1/)
      await fixture.get('/ok')
      const denied = await fixture.get('/ok')
      expect(denied.status).toBe(429)
      expect(denied.headers).toMatchObject({ 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '0' })
      expect(JSON.parse(denied.body)).toMatchObject({ 'violated-policies': ['narrow'] })
      expect(fixture.calls).toHaveLength(2)
    })
  })

  describe('in shadow', () => {
    it('nothing is denied or announced, and everything is reported', async () => {
      const decisions: SuiteDecision[] = []
      const fixture = await openFixture(harness, {
        limiters: [{ limit: 1, window: '1h', shadow: true, onDecision: (decision) => void decisions.push(decision) }],
      })
      for (let call = 0; call < 3; call++) {
        const { status, headers } = await fixture.get('/ok')
        expect(status).toBe(200)
        expect(Object.keys(headers).filter((name) => /ratelimit|retry/.test(name))).toEqual([])
      }
      expect(decisions.map(({ allowed }) => allowed)).toEqual([true, false, false])
      expect(fixture.calls.map(({ decision }) => decision?.allowed)).toEqual([true, false, false])
    })
  })
}
