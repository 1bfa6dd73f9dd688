import type { CheckAnswer, ProblemCode } from '@sluice/contract'
import { PROBLEMS, problemDocument } from '@sluice/contract'
import { freePort } from '@sluice/testing/servers'
import { describe, expect, it } from 'vitest'
import type { ClientFailureMode } from './check-answers.ts'
import { createClient } from './create-client.ts'
import { HeldTime } from './fake-time.test.support.ts'
import { TableServer } from './table-server.test.support.ts'

const NOTHING = { limit: null, remaining: null, resetAt: null, retryAfter: null, dimension: '', rule: '' }
const CHECK = { resource: '/x' }

function answering(server: TableServer, code: ProblemCode, headers: Record<string, string> = {}): void {
  server.answer = (_, response) => {
    response.writeHead(PROBLEMS[code].status, { 'Content-Type': 'application/problem+json', ...headers })
    response.end(JSON.stringify(problemDocument(code, { detail: 'Later.' })))
    return true
  }
}

describe('a service that cannot be reached', () => {
  it('is answered by the failure mode of the client, and the answer reports it', async () => {
    const url = `http://127.0.0.1:${await freePort()}`
    const failure = { cause: 'unreachable', charged: 'no' }
    const open = createClient({ url, failureMode: 'open', retry: false })
    expect(await open.check(CHECK)).toEqual({
      allowed: true,
      reason: 'allowed',
      ...NOTHING,
      failure: { mode: 'open', ...failure },
    })
    const denied = { allowed: false, reason: 'unavailable', ...NOTHING, failure: { mode: 'closed', ...failure } }
    expect(await open.check(CHECK, { failureMode: 'closed' })).toEqual(denied)
    expect(await open.peek(CHECK, { failureMode: 'closed' })).toEqual(denied)
    expect(await open.batch([CHECK, CHECK], { failureMode: 'closed' })).toEqual([denied, denied])
    await expect(open.check(CHECK, { failureMode: 'throw' })).rejects.toMatchObject({
      code: 'SLUICE_CLIENT_UNREACHABLE',
    })
    await expect(createClient({ url, retry: false }).check(CHECK)).rejects.toMatchObject({
      code: 'SLUICE_CLIENT_UNREACHABLE',
    })
  })

  it('is an error for everything that has no such answer', async () => {
    const url = `http://127.0.0.1:${await freePort()}`
    const client = createClient({ url, failureMode: 'open', retry: false })
    await expect(client.reserve(CHECK)).rejects.toMatchObject({ code: 'SLUICE_CLIENT_UNREACHABLE' })
    await expect(client.call('listTiers')).rejects.toMatchObject({ code: 'SLUICE_CLIENT_UNREACHABLE' })
  })
})

describe('a service that is too slow', () => {
  it('is answered for when the time is over, and may have charged', async () => {
    const server = await TableServer.start()
    server.answer = () => true
    const time = new HeldTime()
    const client = createClient({ url: server.url, failureMode: 'open', timeoutMs: 50, ...time })
    const calls = [
      client.check(CHECK),
      client.check({ ...CHECK, tokens: 0 }),
      client.peek(CHECK),
      client.batch([CHECK]),
    ]
    await time.pass(50, 4)
    const answers = (await Promise.all(calls)).flat() as CheckAnswer[]
    expect(answers.map(({ allowed, failure }) => [allowed, failure?.cause, failure?.charged])).toEqual([
      [true, 'deadline', 'unknown'],
      [true, 'deadline', 'no'],
      [true, 'deadline', 'no'],
      [true, 'deadline', 'unknown'],
    ])
    expect(time.pending).toEqual([])
  })
})

describe('a service that turns checks away', () => {
  it.each<[ProblemCode, 'no' | 'unknown']>([
    ['SLUICE_HTTP_OVERLOADED', 'no'],
    ['SLUICE_HTTP_TOO_MANY_FAILURES', 'no'],
    ['SLUICE_HTTP_INTERNAL', 'unknown'],
    ['SLUICE_HTTP_OUTCOME_UNKNOWN', 'unknown'],
  ])('with %s is answered for', async (code, charged) => {
    const server = await TableServer.start()
    answering(server, code, charged === 'no' ? { 'Retry-After': '9' } : {})
    const client = createClient({ url: server.url, failureMode: 'closed', retry: false })
    expect(await client.check(CHECK)).toMatchObject({
      allowed: false,
      reason: 'unavailable',
      retryAfter: charged === 'no' ? 9 : null,
      failure: { mode: 'closed', cause: 'refused', charged },
    })
  })

  it('is an error where it is the caller that is wrong', async () => {
    const server = await TableServer.start()
    const client = createClient({ url: server.url, failureMode: 'open', retry: false })
    for (const code of ['SLUICE_HTTP_INVALID_REQUEST', 'SLUICE_HTTP_UNAUTHORIZED', 'SLUICE_HTTP_FORBIDDEN'] as const) {
      answering(server, code)
      await expect(client.check(CHECK)).rejects.toMatchObject({ code })
    }
    server.answer = (_, response) => {
      response.writeHead(200, { 'Content-Type': 'text/html' }).end('<html>')
      return true
    }
    await expect(client.check(CHECK)).rejects.toMatchObject({ code: 'SLUICE_CLIENT_UNEXPECTED_ANSWER' })
  })
})

it('does not answer for a call that its caller ended', async () => {
  const server = await TableServer.start()
  const controller = new AbortController()
  server.answer = () => {
    controller.abort('enough')
    return true
  }
  const client = createClient({ url: server.url, failureMode: 'open' })
  await expect(client.check(CHECK, { signal: controller.signal })).rejects.toBe('enough')
})

it('knows its modes', async () => {
  const server = await TableServer.start()
  const failureMode = 'opne' as ClientFailureMode
  const expected = { code: 'SLUICE_CLIENT_INVALID_OPTION', detail: expect.stringContaining('"opne"') }
  expect(() => createClient({ url: server.url, failureMode })).toThrow(expect.objectContaining(expected))
  await expect(createClient({ url: server.url }).check(CHECK, { failureMode })).rejects.toMatchObject(expected)
})
