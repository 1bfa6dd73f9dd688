import type { ServerResponse } from 'node:http'
import type { ProblemCode } from '@sluice/contract'
import { PROBLEMS, problemDocument } from '@sluice/contract'
import type { RetryNotice } from '@sluice/runtime/portable'
import { freePort } from '@sluice/testing/servers'
import { describe, expect, it } from 'vitest'
import type { Client } from '../client.ts'
import type { ClientOptions } from '../client-options.ts'
import { createClient } from '../create-client.ts'
import { isClientError } from '../errors/client-error.ts'
import { HeldTime } from '../fake-time.test.support.ts'
import type { Override } from '../table-server.test.support.ts'
import { TableServer } from '../table-server.test.support.ts'

const MINUTE = 60_000

/** A client whose time is in the hands of the test, and whose waits have no jitter. */
function clientOn(
  url: string,
  options: Partial<ClientOptions> = {},
): { readonly client: Client; readonly time: HeldTime } {
  const time = new HeldTime()
  const client = createClient({ url, timeoutMs: MINUTE, random: () => 0.5, ...time, ...options })
  return { client, time }
}

/** Answers the first requests with what each of these does, and all others well. */
function firstly(...answers: ((response: ServerResponse) => void)[]): Override {
  return (_, response) => {
    const answer = answers.shift()
    answer?.(response)
    return answer !== undefined
  }
}

function problem(code: ProblemCode, headers: Record<string, string> = {}): (response: ServerResponse) => void {
  return (response) => {
    response.writeHead(PROBLEMS[code].status, { 'Content-Type': 'application/problem+json', ...headers })
    response.end(JSON.stringify(problemDocument(code, { detail: 'Later.' })))
  }
}

const busy = problem('SLUICE_HTTP_OVERLOADED', { 'Retry-After': '1' })
const breakOff = (response: ServerResponse): void => void response.destroy()

async function codeOf(call: Promise<unknown>): Promise<string | undefined> {
  return await call.then(
    () => undefined,
    (error: unknown) => (isClientError(error) ? error.code : String(error)),
  )
}

describe('a call that the service turned away', () => {
  it('is retried after 2, 4, 8, 16 and 32 seconds: 5 retries, 6 calls in all', async () => {
    const server = await TableServer.start()
    server.answer = firstly(busy, busy, busy, busy, busy, busy)
    const { client, time } = clientOn(server.url, { timeoutMs: 2 * MINUTE })
    const outcome = client.check({ resource: '/x' }).catch((error: unknown) => error)
    for (const delayMs of [2000, 4000, 8000, 16_000, 32_000]) await time.pass(delayMs)
    expect(await outcome).toMatchObject({
      code: 'SLUICE_CLIENT_RETRIES_EXHAUSTED',
      status: 503,
      retryAfterMs: 1000,
      detail: expect.stringMatching(/^6 calls failed. The last one: SLUICE_HTTP_OVERLOADED: .* Later.$/),
      cause: expect.objectContaining({ code: 'SLUICE_HTTP_OVERLOADED' }),
    })
    expect(server.asked).toHaveLength(6)
    expect(time.waits).toEqual([2 * MINUTE, 2000, 4000, 8000, 16_000, 32_000])
    expect(time.pending).toEqual([])
  })

  it('is answered by the failure mode when the retries are used up', async () => {
    const server = await TableServer.start()
    server.answer = firstly(busy, busy)
    const { client, time } = clientOn(server.url, { failureMode: 'closed', retry: { maxRetries: 1 } })
    const answer = client.check({ resource: '/x' })
    await time.pass(2000)
    expect(await answer).toMatchObject({
      allowed: false,
      retryAfter: 1,
      failure: { mode: 'closed', cause: 'refused', charged: 'no' },
    })
    expect(server.asked).toHaveLength(2)
  })

  it('is retried no earlier than announced', async () => {
    const server = await TableServer.start()
    server.answer = firstly(
      problem('SLUICE_HTTP_NOT_READY', { 'Retry-After': '30' }),
      problem('SLUICE_HTTP_TOO_MANY_FAILURES', { RateLimit: '"logins";r=0;t=7' }),
    )
    const notices: RetryNotice[] = []
    const { client, time } = clientOn(server.url, { retry: { onRetry: (notice) => notices.push(notice) } })
    const answer = client.check({ resource: '/x' })
    await time.pass(30_000)
    await time.pass(7000)
    expect(await answer).toMatchObject({ allowed: true })
    expect(server.asked).toHaveLength(3)
    expect(notices.map(({ attempt, delayMs }) => [attempt, delayMs])).toEqual([
      [0, 30_000],
      [1, 7000],
    ])
  })

  it('fails at once when the next wait is longer than the time that is left', async () => {
    const server = await TableServer.start()
    const told: RetryNotice[] = []
    const { client, time } = clientOn(server.url, { retry: { onRetry: (notice) => told.push(notice) } })
    server.answer = firstly(problem('SLUICE_HTTP_NOT_READY', { 'Retry-After': '60' }))
    expect(await codeOf(client.check({ resource: '/x' }))).toBe('SLUICE_HTTP_NOT_READY')
    server.answer = firstly(busy, busy, busy)
    const outcome = codeOf(client.check({ resource: '/x' }, { timeoutMs: 5000 }))
    await time.pass(2000)
    // 3 seconds are left, and 4 would be waited.
    expect(await outcome).toBe('SLUICE_HTTP_OVERLOADED')
    expect(server.asked).toHaveLength(3)
    expect(told).toHaveLength(1)
    expect(time.pending).toEqual([])
  })

  it('is not made again when its caller ends it in between', async () => {
    const server = await TableServer.start()
    server.answer = firstly(busy)
    const { client, time } = clientOn(server.url)
    const controller = new AbortController()
    const outcome = codeOf(client.check({ resource: '/x' }, { signal: controller.signal }))
    await time.until(2000)
    controller.abort('enough')
    expect(await outcome).toBe('enough')
    expect(server.asked).toHaveLength(1)
    expect(time.pending).toEqual([])
  })

  it('waits up to a quarter less or more, and never longer than the cap', async () => {
    const server = await TableServer.start()
    server.answer = firstly(busy, busy, busy)
    const draws = [0, 1, 0.25]
    const retry = { baseMs: 3000, capMs: 4000 }
    const { client, time } = clientOn(server.url, { retry, random: () => draws.shift()! })
    const answer = client.check({ resource: '/x' })
    for (const delayMs of [2250, 4000, 4000]) await time.pass(delayMs)
    expect(await answer).toMatchObject({ allowed: true })
  })

  it('is made once on request', async () => {
    const server = await TableServer.start()
    server.answer = firstly(busy)
    const { client } = clientOn(server.url, { retry: false })
    expect(await codeOf(client.check({ resource: '/x' }))).toBe('SLUICE_HTTP_OVERLOADED')
    expect(server.asked).toHaveLength(1)
  })
})

describe('a call that was never sent', () => {
  it('is made again, whatever it is', async () => {
    const { client, time } = clientOn(`http://127.0.0.1:${await freePort()}`, { retry: { maxRetries: 1 } })
    for (const make of [
      () => client.check({ resource: '/x' }),
      () => client.settle({ reservationId: 'r', tokens: 1 }),
      () => client.call('putTier', { parameters: { name: 'a' }, body: { name: 'a', multiplier: 2 } }),
    ]) {
      const outcome = codeOf(make())
      await time.pass(2000)
      expect(await outcome).toBe('SLUICE_CLIENT_RETRIES_EXHAUSTED')
    }
    expect(time.waits.filter((ms) => ms === 2000)).toHaveLength(3)
  })
})

describe('a call with an unknown outcome', () => {
  const cost = { resource: '/x', tokens: 1 }
  const free = { resource: '/x', tokens: 0 }

  it.each<[string, (client: Client) => Promise<unknown>, number]>([
    ['a check', (client) => client.check(cost), 1],
    ['a check without tokens', (client) => client.check(free), 2],
    ['a check without tokens that goes alone', (client) => client.check(free, { batch: false }), 2],
    ['checks of one turn', (client) => Promise.all([client.check(cost), client.check(free)]), 1],
    ['checks of one turn without tokens', (client) => Promise.all([client.check(free), client.check(free)]), 2],
    ['several checks at once', (client) => client.batch([cost, free]), 1],
    ['several checks without tokens', (client) => client.batch([free, free]), 2],
    ['a peek', (client) => client.peek(cost), 2],
    ['a reservation', (client) => client.reserve(cost), 1],
    ['a settlement', (client) => client.settle({ reservationId: 'r', tokens: 1 }), 1],
    ['a release', (client) => client.release({ reservationId: 'r' }), 2],
    ['a slot', (client) => client.acquire(cost), 1],
    ['a heartbeat', (client) => client.heartbeat({ reservationId: 'r' }), 2],
    ['a report', (client) => client.report({ resource: '/x', failed: true }), 1],
    ['a read', (client) => client.call('listTiers'), 2],
    ['a change', (client) => client.call('deleteTier', { parameters: { name: 'a' } }), 1],
  ])('such as %s is made again only where that does no harm', async (_, make, times) => {
    const server = await TableServer.start()
    server.answer = firstly(breakOff)
    const { client, time } = clientOn(server.url)
    const outcome = codeOf(make(client))
    if (times === 2) await time.pass(2000)
    expect(await outcome).toBe(times === 2 ? undefined : 'SLUICE_CLIENT_UNREACHABLE')
    expect(server.asked).toHaveLength(times)
  })

  it('includes one that something on the way answered for', async () => {
    const server = await TableServer.start()
    const gateway = (response: ServerResponse): void => void response.writeHead(502).end()
    server.answer = firstly(gateway, gateway)
    const { client, time } = clientOn(server.url)
    expect(await codeOf(client.check(cost))).toBe('SLUICE_CLIENT_UNEXPECTED_ANSWER')
    const outcome = codeOf(client.call('listTiers'))
    await time.pass(2000)
    expect(await outcome).toBeUndefined()
    expect(server.asked).toHaveLength(3)
  })
})

describe('an answer that says no', () => {
  it.each<ProblemCode>(['SLUICE_HTTP_INVALID_REQUEST', 'SLUICE_HTTP_UNAUTHORIZED', 'SLUICE_HTTP_INTERNAL'])(
    'such as %s is final',
    async (code) => {
      const server = await TableServer.start()
      server.answer = firstly(problem(code))
      const { client } = clientOn(server.url)
      expect(await codeOf(client.call('listTiers'))).toBe(code)
      expect(server.asked).toHaveLength(1)
    },
  )
})

it.each([
  ['maxRetries', { maxRetries: -1 }],
  ['maxRetries', { maxRetries: 1.5 }],
  ['baseMs', { baseMs: -1 }],
  ['capMs', { baseMs: 10, capMs: 5 }],
])('rejects %s that cannot be used', (name, retry) => {
  expect(() => createClient({ url: 'http://host', retry })).toThrow(
    expect.objectContaining({ code: 'SLUICE_CLIENT_INVALID_OPTION', detail: expect.stringContaining(name) }),
  )
})
