import type { ServerResponse } from 'node:http'
import type { CheckRequest, FieldProblem } from '@sluice/contract'
import { parseBatchRequest, parseCheckRequest, problemDocument } from '@sluice/contract'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from './client-options.ts'
import { createClient } from './create-client.ts'
import { HeldTime } from './fake-time.test.support.ts'
import { answerJson, TableServer } from './table-server.test.support.ts'

const LIMIT = 5

function invalid(response: ServerResponse, errors: readonly FieldProblem[]): true {
  response.writeHead(400, { 'Content-Type': 'application/problem+json' })
  response.end(JSON.stringify(problemDocument('SLUICE_HTTP_INVALID_REQUEST', { detail: 'Some fields.', errors })))
  return true
}

/** Answers checks as the service does, with a limit of 5 tokens for each user that nothing comes back to. */
function counting(server: TableServer): void {
  const used = new Map<string | undefined, number>()
  const decide = ({ user, tokens = 1 }: CheckRequest): { allowed: boolean; remaining: number } => {
    const before = used.get(user) ?? 0
    const allowed = before + tokens <= LIMIT
    used.set(user, allowed ? before + tokens : before)
    return { allowed, remaining: LIMIT - used.get(user)! }
  }
  server.answer = ({ id, body }, response) => {
    if (id === 'checkBatch') {
      const parsed = parseBatchRequest(body)
      if (!parsed.ok) return invalid(response, parsed.problems)
      return answerJson(response, 200, { answers: parsed.requests.map((request) => decide(request as CheckRequest)) })
    }
    const parsed = parseCheckRequest(body)
    if (!parsed.ok) return invalid(response, parsed.problems)
    const answer = decide(parsed.request as CheckRequest)
    return answerJson(response, answer.allowed ? 200 : 429, answer)
  }
}

async function start(options: Partial<ClientOptions> = {}): Promise<{
  readonly server: TableServer
  readonly client: ReturnType<typeof createClient>
}> {
  const server = await TableServer.start()
  counting(server)
  return { server, client: createClient({ url: server.url, retry: false, ...options }) }
}

const users = (count: number): CheckRequest[] =>
  Array.from({ length: count }, (_, index) => ({ userId: `u${index}`, resource: '/x' }))

/** What each request asked for, as the users of the checks that it holds. */
function askedUsers(server: TableServer): unknown {
  return server.asked.map(({ body }) => {
    const { requests, userId } = body as { requests?: CheckRequest[]; userId?: string }
    return requests?.map((request) => request.userId) ?? userId
  })
}

describe('checks of one turn', () => {
  it('go as one batch, each with its own answer', async () => {
    const { server, client } = await start()
    const requests = [...users(3), { userId: 'u1', resource: '/x', tokens: 4 }, { userId: 'u1', resource: '/x' }]
    const answers = await Promise.all(requests.map((request) => client.check(request)))
    expect(answers.map(({ remaining }) => remaining)).toEqual([4, 4, 4, 0, 0])
    expect(answers.map(({ allowed }) => allowed)).toEqual([true, true, true, true, false])
    expect(askedUsers(server)).toEqual([['u0', 'u1', 'u2', 'u1', 'u1']])
  })

  it('are all that begin before the turn ends, whatever begins them', async () => {
    const { server, client } = await start()
    const [one, two, three] = users(3)
    const second = Promise.resolve().then(() => client.check(two!))
    const third = new Promise((resolve) => process.nextTick(() => resolve(client.check(three!))))
    await Promise.all([client.check(one!), second, third])
    expect(server.asked).toHaveLength(1)
  })

  it('are sent alone where there is one, and on request', async () => {
    const { server, client } = await start()
    const [one, two, three] = users(3)
    await client.check(one!)
    await Promise.all([client.check(two!, { batch: false }), client.check(three!)])
    expect(server.asked.map(({ id }) => id)).toEqual(['check', 'check', 'check'])
    const apart = createClient({ url: server.url, batch: false })
    await Promise.all(users(2).map((request) => apart.check(request)))
    await Promise.all(users(2).map((request) => apart.check(request, { batch: true })))
    expect(server.asked.slice(3).map(({ id }) => id)).toEqual(['check', 'check', 'checkBatch'])
  })

  it('are at most 100 in a batch', async () => {
    const { server, client } = await start()
    const requests = users(250)
    const answers = await Promise.all(requests.map((request) => client.check(request)))
    expect(answers.every(({ allowed, remaining }) => allowed && remaining === 4)).toBe(true)
    const sizes = server.asked.map(({ body }) => (body as { requests: [] }).requests.length)
    expect(sizes.toSorted((one, other) => one - other)).toEqual([50, 100, 100])
  })

  it('are no more than the service takes at once, and a large one goes alone', async () => {
    const { server, client } = await start()
    server.answer = ({ id, body }, response) => {
      const { requests = [] } = body as { requests?: readonly unknown[] }
      return answerJson(response, 200, id === 'check' ? {} : { answers: requests.map(() => ({})) })
    }
    const wordy = (length: number): CheckRequest => ({ resource: '/x', userId: 'ü'.repeat(length) })
    await Promise.all([6000, ...Array.from({ length: 50 }, () => 100)].map((length) => client.check(wordy(length))))
    expect(server.asked.map(({ id }) => id).toSorted()).toEqual(['check', 'checkBatch'])
    server.asked.length = 0
    await Promise.all(Array.from({ length: 100 }, () => client.check(wordy(5000))))
    expect(server.asked.map(({ id }) => id)).toEqual(['checkBatch', 'checkBatch'])
    for (const { body } of server.asked) expect(Buffer.byteLength(JSON.stringify(body))).toBeLessThan(1_048_576)
  })

  it('are sent as they were when they were made', async () => {
    const { server, client } = await start()
    const request = { userId: 'before', resource: '/x' }
    const answers = [client.check(request), client.check(request)]
    request.userId = 'after'
    await Promise.all(answers)
    expect(askedUsers(server)).toEqual([['before', 'before']])
  })

  it('use one connection', async () => {
    const { server, client } = await start()
    for (let turn = 0; turn < 20; turn++) await Promise.all(users(50).map((request) => client.check(request)))
    expect(server.asked).toHaveLength(20)
    // A second one is made when a batch begins before the end of the answer before was seen.
    expect(server.connections).toBeLessThanOrEqual(2)
  })
})

describe('one check of a batch', () => {
  it('that cannot be understood fails alone, and nothing is counted twice', async () => {
    const { server, client } = await start()
    const [one, two, three] = users(3)
    const wrong = { userId: 'wrong', resource: '/x', tokens: -1 }
    const outcomes = await Promise.allSettled(
      [one!, wrong, two!, { resource: 7 } as unknown as CheckRequest, three!].map((request) => client.check(request)),
    )
    expect(
      outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value.remaining : outcome.reason.errors)),
    ).toEqual([
      4,
      [expect.objectContaining({ path: '/tokens' })],
      4,
      [expect.objectContaining({ path: '/resource' })],
      4,
    ])
    expect(server.asked.map(({ id }) => id).toSorted()).toEqual(['check', 'check', 'checkBatch', 'checkBatch'])
  })

  it('fails alone where it cannot even be sent', async () => {
    const { server, client } = await start()
    const endless = { resource: '/x', tokens: 1n as unknown as number }
    const outcomes = await Promise.allSettled([client.check(users(1)[0]!), client.check(endless)])
    expect(outcomes).toEqual([
      expect.objectContaining({ status: 'fulfilled' }),
      expect.objectContaining({ reason: expect.objectContaining({ code: 'SLUICE_CLIENT_INVALID_OPTION' }) }),
    ])
    expect(server.asked).toHaveLength(1)
  })

  it('that its caller ends before the turn ends is not sent', async () => {
    const { server, client } = await start()
    const controller = new AbortController()
    const [one, two, three] = users(3)
    const ended = client.check(two!, { signal: controller.signal })
    const others = [client.check(one!), client.check(three!)]
    controller.abort('enough')
    await expect(ended).rejects.toBe('enough')
    expect((await Promise.all(others)).map(({ allowed }) => allowed)).toEqual([true, true])
    expect(askedUsers(server)).toEqual([['u0', 'u2']])
  })

  it('that its caller ends on the way leaves the others alone', async () => {
    const { server, client } = await start()
    const controller = new AbortController()
    const held = Promise.withResolvers<ServerResponse>()
    server.answer = (_, response) => {
      held.resolve(response)
      return true
    }
    const [one, two] = users(2)
    const [ended, other] = [client.check(one!, { signal: controller.signal }), client.check(two!)]
    const open = await held.promise
    controller.abort('enough')
    await expect(ended).rejects.toBe('enough')
    answerJson(open, 200, { answers: [{ remaining: 1 }, { remaining: 2 }] })
    expect(await other).toEqual({ remaining: 2 })
  })

  it('has its own time', async () => {
    const time = new HeldTime()
    const { server, client } = await start(time)
    const held = Promise.withResolvers<ServerResponse>()
    server.answer = (_, response) => {
      held.resolve(response)
      return true
    }
    const [one, two] = users(2)
    const [hasty, patient] = [client.check(one!, { timeoutMs: 10 }), client.check(two!, { timeoutMs: 1000 })]
    const open = await held.promise
    await time.pass(10)
    await expect(hasty).rejects.toMatchObject({ code: 'SLUICE_CLIENT_TIMEOUT' })
    answerJson(open, 200, { answers: [{ remaining: 1 }, { remaining: 2 }] })
    expect(await patient).toEqual({ remaining: 2 })
    expect(time.pending).toEqual([])
  })

  it('and the others, when no caller waits any more, abort the request', async () => {
    const { server, client } = await start()
    const controller = new AbortController()
    const closed = Promise.withResolvers<void>()
    const arrived = Promise.withResolvers<void>()
    server.answer = (_, response) => {
      response.on('close', closed.resolve)
      arrived.resolve()
      return true
    }
    const calls = users(2).map((request) => client.check(request, { signal: controller.signal }))
    await arrived.promise
    controller.abort('enough')
    expect(await Promise.allSettled(calls)).toEqual(calls.map(() => ({ status: 'rejected', reason: 'enough' })))
    await closed.promise
  })
})

describe('a batch', () => {
  it.each([
    ['too few answers', { answers: [{ allowed: true }] }],
    ['no answers', {}],
  ])('that gets %s fails for all', async (_, body) => {
    const { server, client } = await start()
    server.answer = (_asked, response) => answerJson(response, 200, body)
    const outcomes = await Promise.allSettled(users(2).map((request) => client.check(request)))
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ reason: { code: 'SLUICE_CLIENT_UNEXPECTED_ANSWER' } })
    }
  })

  it('that the service rejects without a word about a check goes one by one', async () => {
    const { server, client } = await start()
    const usual = server.answer
    server.answer = (asked, response, request) =>
      asked.id === 'checkBatch' ? invalid(response, []) : usual(asked, response, request)
    const answers = await Promise.all(users(3).map((request) => client.check(request)))
    expect(answers.map(({ remaining }) => remaining)).toEqual([4, 4, 4])
    expect(server.asked).toHaveLength(4)
  })
})

it('gives what checks give one by one', async () => {
  const server = await TableServer.start()
  const together = createClient({ url: server.url, retry: false })
  const apart = createClient({ url: server.url, retry: false, batch: false })
  const request = fc.record({
    userId: fc.constantFrom('a', 'b', 'c'),
    resource: fc.constantFrom('/x', '/y'),
    tokens: fc.constantFrom(0, 1, 1, 2, 3, 6, -1, 1.5),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(request, { maxLength: 30 }), async (requests) => {
      counting(server)
      const batched = await Promise.allSettled(requests.map((check) => together.check(check)))
      counting(server)
      const single: PromiseSettledResult<unknown>[] = []
      for (const check of requests) single.push(...(await Promise.allSettled([apart.check(check)])))
      const shown = (outcomes: readonly PromiseSettledResult<unknown>[]): unknown =>
        outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : outcome.reason.errors))
      expect(shown(batched)).toEqual(shown(single))
    }),
    { numRuns: 60 },
  )
})
