import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunningService } from '../../service.fixture.ts'
import { startService } from '../../service.fixture.ts'

// The check API as clients meet it: over HTTP, with the rules that a first start puts in force.

const ORDER = { userId: 'ann', resource: '/orders' }

async function service(settings: Parameters<typeof startService>[0] = {}): Promise<RunningService> {
  const running = await startService(settings)
  onTestFinished(() => running.stop())
  return running
}

interface Posted {
  readonly status: number
  readonly headers: Headers
  readonly body: Readonly<Record<string, unknown>>
}

/** Posts to an operation below `/internal/ratelimit/`, each time over a connection of its own. */
async function post({ origin }: RunningService, name: string, body: unknown): Promise<Posted> {
  const response = await fetch(`${origin}/internal/ratelimit/${name}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Connection: 'close' },
    body: JSON.stringify(body),
  })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Posted['body'] }
}

describe('over HTTP', () => {
  it('a check is allowed, and denied with the time to come back', async () => {
    const running = await service()
    const allowed = await post(running, 'check', ORDER)
    expect(allowed).toMatchObject({ status: 200, body: { allowed: true, limit: 100, remaining: 99, version: 1 } })
    expect(allowed.headers.get('X-RateLimit-Remaining')).toBe('99')
    expect(allowed.body['decisionId']).toMatch(/^\d{18,19}$/)
    const denied = await post(running, 'check', { ...ORDER, tokens: 100 })
    expect(denied).toMatchObject({ status: 429, body: { allowed: false, reason: 'limit', retryAfter: 1 } })
    expect(denied.headers.get('Retry-After')).toBe('1')
    expect(denied.headers.get('Cache-Control')).toBe('no-store')
  })

  it('300 checks at once admit exactly 100', async () => {
    const running = await service()
    const answers = await Promise.all(Array.from({ length: 300 }, () => running.check(ORDER)))
    expect(answers.filter(({ status }) => status === 200).length).toBe(100)
    expect(answers.filter(({ status }) => status === 429).length).toBe(200)
    await Promise.all(answers.map((answer) => answer.body?.cancel()))
  })

  it('a batch of 100 large checks is read whole', async () => {
    const running = await service()
    const requests = Array.from({ length: 100 }, (_, index) => ({
      userId: `${index}`.padEnd(256, 'x'),
      resource: `/${'y'.repeat(2000)}`,
      descriptors: { model: 'z'.repeat(512) },
    }))
    const { status, body } = await post(running, 'batch', { requests })
    expect(status).toBe(200)
    expect((body['answers'] as readonly { remaining: number }[]).map(({ remaining }) => remaining)).toEqual(
      Array.from({ length: 100 }, () => 99),
    )
  })

  it('a reservation is settled by its id', async () => {
    const running = await service()
    const { reservationId } = (await post(running, 'reserve', { ...ORDER, tokens: 40 })).body
    const settled = await post(running, 'settle', { reservationId, tokens: 10 })
    expect(settled).toMatchObject({ status: 200, body: { outcome: 'settled', corrected: -30 } })
    expect((await post(running, 'peek', ORDER)).body['remaining']).toBe(90)
  })

  it.each([
    [true, 100],
    [false, 150],
  ])('with the default limit %s, 150 requests that no rule matches admit %i', async (defaultLimit, admitted) => {
    const running = await service({ defaultLimit })
    const requests = Array.from({ length: 75 }, () => ({ apiKey: 'k', resource: '/orders' }))
    const answers = [await post(running, 'batch', { requests }), await post(running, 'batch', { requests })].flatMap(
      ({ body }) => body['answers'] as readonly { readonly allowed: boolean; readonly rule: string }[],
    )
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(admitted)
    expect(answers[0]).toMatchObject(defaultLimit ? { rule: 'default:apiKey', limit: 100 } : { reason: 'unlimited' })
  })

  it('an address that floods is blocked, unless it is of this machine or a trusted proxy', async () => {
    const running = await service({ trustedProxies: ['10.0.0.0/8'] })
    for (const clientIp of ['192.0.2.7', '127.0.0.1', '10.1.2.3']) {
      const requests = Array.from({ length: 100 }, () => ({ clientIp, resource: '/orders' }))
      for (let call = 0; call < 12; call++) await post(running, 'batch', { requests })
    }
    const blocks = async (): Promise<unknown> =>
      ((await (await running.admin('GET', '/admin/blocks')).json()) as { readonly items: unknown }).items
    await expect
      .poll(blocks)
      .toMatchObject([{ entry: { dimension: 'ip', entity: '192.0.2.7', rule: 'default-ip', strikes: 1 } }])
    expect((await post(running, 'check', { clientIp: '192.0.2.7', userId: 'u', resource: '/' })).body).toMatchObject({
      allowed: false,
      reason: 'blocked',
    })
  })

  it('ids are unique', async () => {
    const { origin } = await service()
    const response = await fetch(`${origin}/v1/ids?count=1000`)
    const { ids } = (await response.json()) as { ids: readonly string[] }
    expect(new Set(ids).size).toBe(1000)
    expect((await fetch(`${origin}/v1/ids?count=1001`)).status).toBe(400)
  })
})

describe('with two threads', () => {
  it('reports of calls cut limits in both, whichever thread gets them', async () => {
    const running = await service({ threads: 2 })
    const errorRate = {
      ...{ cutAbove: 0.5, restoreBelow: 0.1, window: '1h', leastCalls: 32 },
      ...{ step: 0.5, least: 0.1, hold: '1h' },
    }
    const rules = [{ dimension: 'user', limit: 100, window: '1m', errorRate }]
    const set = await running.admin('PUT', '/admin/ratelimits', { body: { resource: '/x', rules } })
    expect(set.status).toBe(200)
    /** What peeks over connections of their own, which come to either thread, say. */
    const seen = async (field: string): Promise<Set<unknown>> => {
      const peek = (): Promise<Posted> => post(running, 'peek', { userId: 'ann', resource: '/x' })
      const answers = await Promise.all(Array.from({ length: 16 }, peek))
      return new Set(answers.map(({ body }) => body[field]))
    }
    await expect.poll(() => seen('version')).toEqual(new Set([2]))
    const report = (): Promise<Posted> => post(running, 'report', { reports: [{ resource: '/x', failed: true }] })
    // As many as are needed: a thread that knew only of its own would not have enough.
    const answers = await Promise.all(Array.from({ length: 32 }, report))
    expect(answers.map(({ status, body }) => [status, body])).toEqual(answers.map(() => [200, { count: 1 }]))
    await expect.poll(() => seen('limit')).toEqual(new Set([50]))
  })

  it('reservations are settled exactly and once, whichever thread gets the request', async () => {
    const running = await service({ threads: 2 })
    const taken = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        post(running, 'reserve', { userId: `user-${index}`, resource: '/x', tokens: 40 }),
      ),
    )
    for (const [index, { body }] of taken.entries()) {
      const { reservationId } = body
      const settlements = await Promise.all(
        Array.from({ length: 6 }, () => post(running, 'settle', { reservationId, tokens: 10 })),
      )
      for (const { body: settled } of settlements) expect(settled).toEqual(settlements[0]!.body)
      expect(settlements[0]!.body['outcome']).toBe('settled')
      const { remaining } = (await post(running, 'peek', { userId: `user-${index}`, resource: '/x' })).body
      // A little of it flows back while the test runs, and never more is left than there was.
      expect(remaining).toBeGreaterThanOrEqual(90)
    }
  })
})
