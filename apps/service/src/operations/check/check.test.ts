import { HEADER_PROFILES, OPERATIONS } from '@sluice/contract'
import { memoryStore } from '@sluice/core'
import type { RuleSet } from '@sluice/core/policy'
import { RuntimeError } from '@sluice/runtime'
import { FakeClock } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CheckApi, perUser, readAnswer, wrongPaths } from './check-api.test.support.ts'
import type { CheckOperation } from './check-handlers.ts'

const ORDER = { userId: 'ann', resource: '/orders' }

function inMemory(options: { ruleSet?: RuleSet; headers?: (typeof HEADER_PROFILES)[number] } = {}): {
  readonly api: CheckApi
  readonly clock: FakeClock
} {
  const clock = new FakeClock()
  return { api: new CheckApi({ store: memoryStore({ clock }), clock, ...options }), clock }
}

/** A valid body for every operation that takes one. */
function bodiesWith(
  reservationId: string,
): Readonly<Record<Exclude<CheckOperation, 'ids'>, unknown>> & { ids?: never } {
  return {
    check: ORDER,
    peek: ORDER,
    reserve: ORDER,
    acquire: ORDER,
    checkBatch: { requests: [ORDER] },
    checkBatchAlias: { requests: [ORDER] },
    settle: { reservationId, tokens: 1 },
    release: { reservationId },
    heartbeat: { reservationId },
    report: { reports: [{ resource: '/orders', failed: true }] },
    shouldRateLimit: { domain: 'shop', descriptors: [{ entries: [{ key: 'user', value: 'ann' }] }] },
  }
}

function operationsOf({ handlers }: CheckApi): readonly CheckOperation[] {
  return Object.keys(handlers) as CheckOperation[]
}

/** The operations of the check API that take a check. */
const TAKES_CHECK = ['check', 'peek', 'reserve', 'acquire'] as const

describe('the check API', () => {
  it('has a handler for every operation of its table, and for no other', () => {
    const wanted = Object.values(OPERATIONS)
      .filter(({ tag, id }) => tag === 'checks' || id === 'ids')
      .map(({ id }) => id)
    expect(Object.keys(inMemory().api.handlers).toSorted()).toEqual(wanted.toSorted())
  })

  it('answers at once on a store that does', async () => {
    const { api } = inMemory({ ruleSet: perUser(100) })
    const reserved = await api.post('reserve', ORDER)
    const bodies = bodiesWith(String(reserved.body['reservationId']))
    for (const id of operationsOf(api)) {
      expect(api.call(id, { body: bodies[id] }), id).not.toBeInstanceOf(Promise)
    }
  })

  it('decides nothing while no rules are known: every operation but ids is answered with 503', async () => {
    const clock = new FakeClock()
    const api = new CheckApi({ store: memoryStore({ clock }), clock, hasRules: false })
    const bodies = bodiesWith('any')
    for (const id of operationsOf(api)) {
      if (id === 'ids') continue
      expect(readAnswer(id, await api.call(id, { body: bodies[id] }))).toMatchObject({
        status: 503,
        headers: { 'Retry-After': '1' },
        body: { code: 'SLUICE_HTTP_NOT_READY' },
      })
    }
    expect((await api.ids('')).status).toBe(200)
  })

  it.each([
    ['has no number', () => undefined],
    [
      'has a clock that was set back',
      () => {
        throw new RuntimeError('SLUICE_RUNTIME_CLOCK_BACKWARDS', { received: '', expected: '', action: '' })
      },
    ],
  ])('decides without naming the decision while this node %s', async (_what, nextId) => {
    const clock = new FakeClock()
    const api = new CheckApi({ store: memoryStore({ clock }), clock, ruleSet: perUser(1), nextId })
    const { status, body } = await api.post('check', ORDER)
    expect(status).toBe(200)
    expect(Object.keys(body)).not.toContain('decisionId')
  })

  it('fails when ids are made by a mistake', () => {
    const clock = new FakeClock()
    const nextId = (): never => {
      throw new TypeError('a mistake')
    }
    const api = new CheckApi({ store: memoryStore({ clock }), clock, nextId })
    expect(() => api.call('check', { body: ORDER })).toThrow('a mistake')
  })
})

describe('Retry-After with jitter', () => {
  const BUSY: RuleSet = { rules: [{ resource: '*', dimension: 'user', limit: 1, window: '100s' }] }

  it('gets random jitter, up to a share of the wait', async () => {
    const draws = [0, 0.5, 0.999]
    const clock = new FakeClock()
    const random = (): number => draws.shift() ?? 0
    const api = new CheckApi({ store: memoryStore({ clock }), clock, ruleSet: BUSY, retryJitter: 0.5, random })
    await api.post('check', ORDER)
    expect(draws).toHaveLength(3)
    const waits: unknown[] = []
    for (let call = 0; call < 3; call++) waits.push((await api.post('check', ORDER)).headers['Retry-After'])
    expect(waits).toEqual(['100', '125', '150'])
    expect((await api.post('check', ORDER)).body['retryAfter']).toBe(100)
  })

  it('property: is never earlier than the truth', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 100 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.integer({ min: 0, max: 99_999 }),
        async (percent, drawn, elapsedMs) => {
          const clock = new FakeClock()
          const random = (): number => drawn
          const options = { ruleSet: BUSY, retryJitter: percent / 100, random }
          const api = new CheckApi({ store: memoryStore({ clock }), clock, ...options })
          await api.post('check', ORDER)
          clock.advance(elapsedMs)
          const denied = await api.post('check', ORDER)
          clock.advance(Number(denied.headers['Retry-After']) * 1000)
          expect((await api.post('check', ORDER)).status).toBe(200)
        },
      ),
    )
  })
})

describe('what cannot be understood', () => {
  it.each(TAKES_CHECK)('names every field that is wrong, and counts nothing (%s)', async (operation) => {
    const { api } = inMemory({ ruleSet: perUser(1) })
    const wrong = {
      user: '',
      apiKey: 7,
      ip: '1.2.3',
      tenant: 'a\nb',
      service: [],
      resource: 'a/b',
      method: 'GET /',
      tokens: 0.5,
      descriptors: { 'no name': 1 },
      region: null,
      tier: '-',
    }
    const answer = await api.post(operation, wrong)
    expect(answer).toMatchObject({ status: 400, headers: {}, body: { code: 'SLUICE_HTTP_INVALID_REQUEST' } })
    expect(wrongPaths(answer)).toEqual(
      Object.keys(wrong).map((field) => (field === 'descriptors' ? '/descriptors/no name' : `/${field}`)),
    )
    for (const [field, value] of Object.entries(wrong)) {
      const { userId: _, ...order } = ORDER
      const [path] = wrongPaths(await api.post(operation, { ...order, [field]: value }))
      expect(path).toMatch(new RegExp(`^/${field}`))
    }
    expect(await api.admitted(2, ORDER)).toBe(1)
  })

  it.each([
    ['check', ORDER, 'usr'],
    ['peek', ORDER, 'user_id'],
    ['reserve', ORDER, 'maxWaitMs'],
    ['acquire', ORDER, 'expiresAfterMs'],
    ['settle', { reservationId: 'r1', tokens: 1 }, 'used'],
    ['release', { reservationId: 'r1' }, 'tokens'],
    ['heartbeat', { reservationId: 'r1' }, 'leaseMs'],
    ['batch', { requests: [ORDER] }, 'atomic'],
    ['report', { reports: [{ resource: '/orders', failed: true }] }, 'resource'],
  ])('is rejected by %s with a field that it does not know', async (operation, body, unknown) => {
    const answer = await inMemory({ ruleSet: perUser(1) }).api.post(operation, { ...body, [unknown]: 1 })
    expect(answer.status).toBe(400)
    expect(answer.body['errors']).toContainEqual({
      path: `/${unknown}`,
      received: 'an unknown field',
      expected: expect.stringMatching(/^only /),
    })
  })

  it.each([
    ['settle', {}, ['/reservationId', '/tokens']],
    ['settle', { reservationId: 'x', tokens: -1 }, ['/tokens']],
    ['settle', { reservationId: 7, tokens: '1' }, ['/reservationId', '/tokens']],
    ['release', {}, ['/reservationId']],
    ['release', { reservationId: 'x'.repeat(8193) }, ['/reservationId']],
    ['heartbeat', { reservationId: '' }, ['/reservationId']],
    ['heartbeat', null, ['']],
    ['reserve', { ...ORDER, expiresAfterMs: 0 }, ['/expiresAfterMs']],
    ['reserve', { ...ORDER, expiresAfterMs: 86_400_001 }, ['/expiresAfterMs']],
    ['acquire', { ...ORDER, maxWaitMs: 30_001 }, ['/maxWaitMs']],
    ['report', {}, ['/reports']],
    ['report', { reports: [] }, ['/reports']],
    ['report', { reports: Array.from({ length: 1001 }, () => ({ resource: '/x', failed: true })) }, ['/reports']],
    ['report', { reports: [{ resource: '/x', failed: 1, status: 500 }] }, ['/reports/0/failed', '/reports/0/status']],
    ['check', {}, ['/resource']],
    ['check', 'text', ['']],
  ])('is rejected by %s: %j', async (operation, body, paths) => {
    const answer = await inMemory({ ruleSet: perUser(1) }).api.post(operation, body)
    expect(answer.status).toBe(400)
    expect(wrongPaths(answer)).toEqual(paths)
  })

  it('lists a limited number of problems, and counts the others', async () => {
    const unknown = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`field${index}`, index]))
    const answer = await inMemory().api.post('check', { ...ORDER, ...unknown })
    expect(wrongPaths(answer).length).toBe(16)
    expect(answer.body['detail']).toMatch(
      /^20 things are wrong: \/field0, .*, and 4 more that are not listed\. Nothing was done\.$/,
    )
    const one = await inMemory().api.post('check', { ...ORDER, tokens: -1 })
    expect(one.body['detail']).toBe('One thing is wrong: /tokens. Nothing was done.')
  })

  it('never repeats an identity or a key', async () => {
    const answer = await inMemory().api.post('check', { ...ORDER, apiKey: 'secret\u0000', userId: 'private\u0000' })
    expect(answer.status).toBe(400)
    expect(JSON.stringify(answer)).not.toMatch(/secret|private/)
  })

  it('is not a cost that is too large to count: it never fits', async () => {
    const rules: RuleSet['rules'] = [
      { resource: '*', dimension: 'user', limit: 1, window: '1m', cost: { descriptor: 'bytes', per: 1e-300 } },
    ]
    const { api } = inMemory({ ruleSet: { rules } })
    const answer = await api.post('check', { ...ORDER, descriptors: { bytes: 1e300 } })
    expect(answer).toMatchObject({ status: 429, body: { reason: 'never', retryAfter: null } })
  })

  it('property: whatever JSON is sent, it is answered, and leaves no trace', async () => {
    const { api } = inMemory({ ruleSet: perUser(5) })
    const name = fc.oneof(
      fc.constantFrom(
        'userId',
        'resource',
        'tokens',
        'requests',
        'reservationId',
        'descriptors',
        '__proto__',
        'constructor',
      ),
      fc.string(),
    )
    const json = fc.oneof(fc.jsonValue(), fc.dictionary(name, fc.jsonValue()))
    const operation = fc.constantFrom(...operationsOf(api).filter((id) => id !== 'ids'))
    await fc.assert(
      fc.asyncProperty(operation, json, async (one, value) => {
        // As a body comes in: a member named __proto__ is one like any other.
        const body: unknown = JSON.parse(JSON.stringify(value))
        const { status } = readAnswer(one, await api.call(one, { body }))
        expect([200, 400, 429]).toContain(status)
        expect(({} as Record<string, unknown>)['userId']).toBeUndefined()
      }),
    )
  })
})

describe('a reservation id that this service did not give', () => {
  const ENDS = [
    ['settle', { tokens: 0 }],
    ['release', {}],
    ['heartbeat', {}],
  ] as const

  it.each(ENDS)('is rejected with the fix, and changes nothing (%s)', async (operation, more) => {
    const { api, clock } = inMemory({ ruleSet: perUser(100) })
    const other = new CheckApi({
      store: memoryStore({ clock }),
      clock,
      ruleSet: perUser(100),
      secret: new Uint8Array(32),
    })
    const id = String((await api.post('reserve', { ...ORDER, tokens: 40 })).body['reservationId'])
    const foreign = String((await other.post('reserve', { ...ORDER, tokens: 40 })).body['reservationId'])
    const [form, text, mac] = id.split('.') as [string, string, string]
    const more40 = Buffer.from(Buffer.from(text, 'base64url').toString().replace(',40,', ',90,')).toString('base64url')
    const forged = [
      foreign,
      id.slice(0, -1),
      `${form}.${text}`,
      `${form}.${text}.`,
      `${form}.${more40}.${mac}`,
      `${form}.${text}.${'A'.repeat(43)}`,
      `r2.${text}.${mac}`,
      ` ${id}`,
      'ann',
    ]
    for (const reservationId of forged) {
      const answer = await api.post(operation, { reservationId, ...more })
      expect(answer, reservationId).toMatchObject({ status: 400, body: { code: 'SLUICE_HTTP_INVALID_REQUEST' } })
      expect(answer.body['errors']).toEqual([
        {
          path: '/reservationId',
          received: `a string of ${reservationId.length} characters that is not a reservation id of this service`,
          expected: 'an unchanged "reservationId" of a response, from a node with the same secret',
        },
      ])
    }
    expect(await api.remaining(ORDER)).toBe(60)
  })
})

describe('when to come back', () => {
  const limits: readonly RuleSet['rules'][number][] = [
    { resource: '*', dimension: 'user', algorithm: 'fixed-window', limit: 1, window: 2500 },
    { resource: '*', dimension: 'user', algorithm: 'gcra', limit: 3, window: 3001 },
    { resource: '*', dimension: 'user', algorithm: 'sliding-window-log', limit: 2, window: 1999 },
    { resource: '*', dimension: 'user', algorithm: 'token-bucket', capacity: 2, refillPerSecond: 0.7 },
  ]

  it.each(limits)('is never too early, to the microsecond ($algorithm)', async (rule) => {
    for (const offsetMicros of [0, 1, 999, 1000, 1001, 499_999, 500_000, 999_000, 999_999, 1_000_000, 1_000_001]) {
      const { api, clock } = inMemory({ ruleSet: { rules: [rule] } })
      clock.advanceMicros(1_234_567)
      await api.admitted(3, ORDER)
      clock.advanceMicros(offsetMicros)
      const denied = await api.post('check', ORDER)
      if (denied.status === 200) continue
      const seconds = Number(denied.headers['Retry-After'])
      expect(denied.body['retryAfter']).toBe(seconds)
      expect(Number.isInteger(seconds) && seconds > 0).toBe(true)
      clock.advanceMicros(seconds * 1_000_000)
      expect(await api.post('peek', ORDER), `${rule.algorithm} at ${offsetMicros}`).toMatchObject({ status: 200 })
    }
  })

  it.each([
    [1000, '1'],
    [1001, '2'],
    [1999, '2'],
    [2000, '2'],
    [2001, '3'],
    [1, '1'],
  ])('is rounded up: %d ms are %s s', async (leftMs, seconds) => {
    const { api, clock } = inMemory({ ruleSet: perUser(1) })
    await api.post('check', ORDER)
    clock.advance(60_000 - leftMs)
    const { headers, body } = await api.post('check', ORDER)
    expect(headers).toMatchObject({ 'Retry-After': seconds, 'X-RateLimit-Reset-After': seconds })
    expect(body['retryAfter']).toBe(Number(seconds))
    clock.advance(leftMs - 1)
    expect((await api.post('check', ORDER)).status).toBe(429)
    clock.advance(1)
    expect((await api.post('check', ORDER)).status).toBe(200)
  })
})

describe('headers', () => {
  const LEGACY = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'X-RateLimit-Reset-After']
  const DRAFT = ['RateLimit', 'RateLimit-Policy']
  const DENIAL = ['Retry-After', 'Cache-Control']
  const names = { legacy: LEGACY, 'draft-11': DRAFT, both: [...LEGACY, ...DRAFT], off: [] } as const

  it.each(HEADER_PROFILES)('are those of the profile, on every answer (%s)', async (headers) => {
    const { api } = inMemory({ ruleSet: perUser(2), headers })
    for (const operation of ['check', 'peek', 'reserve'] as const) {
      expect(Object.keys((await api.post(operation, ORDER)).headers), operation).toEqual(names[headers])
    }
    for (const operation of TAKES_CHECK) {
      const answer = await api.post(operation, ORDER)
      expect(answer.status).toBe(429)
      expect(Object.keys(answer.headers), operation).toEqual([...names[headers], ...DENIAL])
    }
  })

  it('of the draft tell every limit and its window', async () => {
    const rules: RuleSet['rules'] = [
      {
        resource: '*',
        dimension: 'user',
        name: 'each',
        windows: [10, 60].map((s) => ({ limit: s, window: `${s}s` as const })),
      },
      { resource: '*', dimension: 'global', name: 'all', limit: 3, window: '1s' },
    ]
    const { headers } = await inMemory({ ruleSet: { rules }, headers: 'draft-11' }).api.post('check', ORDER)
    expect(headers).toEqual({
      RateLimit: '"each:10s";r=9;t=1, "each:60s";r=59;t=1, "all";r=2;t=1',
      'RateLimit-Policy': '"each:10s";q=10;w=10, "each:60s";q=60;w=60, "all";q=3;w=1',
    })
  })
})
