import type { Worker } from 'node:worker_threads'
import type { CheckAnswer, DecisionRecord, IssuedApiKey, SessionState } from '@sluice/contract'
import { decodeSnowflake } from '@sluice/runtime'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { RunningNode } from '../service.fixture.ts'
import { startRealService } from '../service.fixture.ts'

// Several threads listen on one port, and are one service.

const THREADS = 2

/** Connections that come to all threads, all but for certain: one in 2^15 times to one alone. */
const CONNECTIONS = 16

/** So often a change is made and looked at. */
const ROUNDS = 5

const workers: Worker[] = []

beforeEach(() => {
  workers.length = 0
  const remember = (worker: Worker): void => void workers.push(worker)
  process.on('worker', remember)
  onTestFinished(() => void process.off('worker', remember))
})

async function startThreads(): Promise<RunningNode> {
  const node = await startRealService({ threads: THREADS })
  onTestFinished(() => node.stop())
  return node
}

/** A check on a connection of its own, so that the system gives it to any of the threads. */
async function checkAlone(node: RunningNode, userId: string): Promise<CheckAnswer> {
  const body = { userId, resource: '/x' }
  const response = await node.check(body, { 'Content-Type': 'application/json', Connection: 'close' })
  return (await response.json()) as CheckAnswer
}

/** Which thread decided: each has a number of its own to make ids with. */
function threadOf({ decisionId }: CheckAnswer): number {
  return decodeSnowflake(BigInt(decisionId!)).machine
}

/** Asks until every thread has answered. */
async function fromAllThreads(node: RunningNode): Promise<ReadonlySet<number>> {
  const seen = new Set<number>()
  for (let asked = 0; asked < 1000 && seen.size < THREADS; asked++) {
    seen.add(threadOf(await checkAlone(node, `user-${asked}`)))
  }
  return seen
}

describe('several threads', () => {
  it('accept one session, end it together, and show the decisions of all', async () => {
    const node = await startThreads()
    await fromAllThreads(node)
    const headers = { 'Content-Type': 'application/json' }
    const body = JSON.stringify({ apiKey: node.adminKey })
    const signedIn = await fetch(`${node.origin}/auth/session`, { method: 'POST', headers, body })
    const { csrfToken } = (await signedIn.json()) as SessionState
    const cookie = signedIn.headers.get('set-cookie')!.split(';')[0]!
    const read = async (): Promise<number> =>
      (await fetch(`${node.origin}/admin/decisions`, { headers: { Cookie: cookie, Connection: 'close' } })).status
    const statuses = async (): Promise<readonly number[]> =>
      await Promise.all(Array.from({ length: CONNECTIONS }, () => read()))
    expect(new Set(await statuses())).toEqual(new Set([200]))
    const { items } = (await (await node.admin('GET', '/admin/decisions?limit=1000')).json()) as {
      readonly items: readonly DecisionRecord[]
    }
    expect(new Set(items.map(({ id }) => decodeSnowflake(BigInt(id)).machine)).size).toBe(THREADS)
    const out = { method: 'DELETE', headers: { Cookie: cookie, 'X-CSRF-Token': csrfToken! } }
    expect((await fetch(`${node.origin}/auth/session`, out)).status).toBe(204)
    expect(new Set(await statuses())).toEqual(new Set([401]))
  })

  it('hold one limit together, exactly', async () => {
    const node = await startThreads()
    // Nothing flows back meanwhile, however long it takes.
    const rules = [{ dimension: 'user', algorithm: 'fixed-window', limit: 90, window: '365d' }]
    expect((await node.admin('PUT', '/admin/ratelimits', { body: { resource: '/x', rules } })).status).toBe(200)
    const answers = await Promise.all(Array.from({ length: 400 }, () => checkAlone(node, 'all-want-this')))
    const allowed = answers.filter((answer) => answer.allowed)
    expect(allowed).toHaveLength(90)
    expect(new Set(answers.map(threadOf))).toEqual(new Set([0, 1]))
    expect(new Set(answers.map(({ decisionId }) => decisionId)).size).toBe(400)
  })

  it('show all they counted, whichever answers', async () => {
    const node = await startThreads()
    const answers = await Promise.all(Array.from({ length: 40 }, (_, user) => checkAlone(node, `user-${user}`)))
    expect(new Set(answers.map(threadOf)).size).toBe(THREADS)
    for (let asked = 0; asked < 4; asked++) {
      const page = await (await fetch(`${node.origin}/metrics`, { headers: { Connection: 'close' } })).text()
      expect(page).toMatch(/^ratelimit_decisions_total\{reason="allowed"\} 40$/m)
      expect(page).toMatch(/^sluice_threads 2$/m)
    }
  })

  it('count failed attempts to authenticate together', async () => {
    const node = await startThreads()
    const tryKey = async (attempt: number): Promise<number> => {
      const headers = { Authorization: `Bearer slk_${attempt}_wrong`, Connection: 'close' }
      return (await fetch(`${node.origin}/admin/incident`, { headers })).status
    }
    const statuses = await Promise.all(Array.from({ length: 80 }, (_, attempt) => tryKey(attempt)))
    // 20 in a minute, and one more every 3 s while the test runs; each thread for itself would allow 40.
    const tried = statuses.filter((status) => status === 401).length
    expect(tried).toBeGreaterThanOrEqual(20)
    expect(tried).toBeLessThan(40)
    expect(new Set(statuses)).toEqual(new Set([401, 429]))
  })

  it('are started again when they end, and the others go on meanwhile', async () => {
    const node = await startThreads()
    const [first] = workers
    await first!.terminate()
    // The one that is left answers all.
    for (let asked = 0; asked < 20; asked++) expect((await checkAlone(node, `user-${asked}`)).allowed).toBe(true)
    await expect.poll(() => workers.length, { timeout: 30_000 }).toBe(THREADS + 1)
    await expect
      .poll(async () => (await fetch(`${node.origin}/readyz`)).text(), { timeout: 30_000 })
      .toContain('2 of 2')
    expect(await fromAllThreads(node)).toEqual(new Set([0, 1]))
    expect(node.errors).toMatchObject([{ message: 'a thread ended and is restarted', thread: 0 }])
  })

  it('keep what was counted when one of them ends', async () => {
    const node = await startThreads()
    for (let asked = 0; asked < 60; asked++) await checkAlone(node, 'steady')
    await workers[0]!.terminate()
    const answers: CheckAnswer[] = []
    for (let asked = 0; asked < 60; asked++) answers.push(await checkAlone(node, 'steady'))
    // 100 in a minute, of which some come back while the test runs: one every 600 ms.
    const allowed = answers.filter((answer) => answer.allowed).length
    expect(allowed).toBeGreaterThanOrEqual(40)
    expect(answers.some((answer) => !answer.allowed)).toBe(true)
  })
})

/** Sends one request over `count` connections at once, which reach any of the threads. */
async function atOnce<T>(ask: () => Promise<T>): Promise<readonly T[]> {
  return await Promise.all(Array.from({ length: CONNECTIONS }, ask))
}

async function changed(node: RunningNode, target: string, body?: unknown): Promise<Response> {
  const [method = '', path = ''] = target.split(' ')
  const response = await node.admin(method, path, body === undefined ? {} : { body })
  expect(response.status).toBeLessThan(300)
  return response
}

describe('a change that is answered is in force in every thread', () => {
  it('when it is one of the rules', async () => {
    const node = await startThreads()
    const threads = new Set<number>()
    for (let round = 1; round <= ROUNDS; round++) {
      const rules = [{ dimension: 'user', limit: 1000 + round, window: '1m' }]
      const { version } = (await (
        await changed(node, 'PUT /admin/ratelimits', { resource: '/x', rules })
      ).json()) as CheckAnswer
      const answers = await atOnce(() => checkAlone(node, `user-${round}`))
      expect(answers.map((answer) => [answer.limit, answer.version])).toEqual(
        answers.map(() => [1000 + round, version]),
      )
      for (const answer of answers) threads.add(threadOf(answer))
    }
    expect(threads.size).toBe(THREADS)
  })

  it('when it is a block, or the end of one', async () => {
    const node = await startThreads()
    for (let round = 0; round < ROUNDS; round++) {
      const entity = `user-${round}`
      await changed(node, 'PUT /admin/blocks', { dimension: 'user', entity, duration: '1h' })
      const blocked = await atOnce(() => checkAlone(node, entity))
      expect(new Set(blocked.map(({ reason }) => reason))).toEqual(new Set(['blocked']))
      await changed(node, `DELETE /admin/blocks?dimension=user&entity=${entity}`)
      const free = await atOnce(() => checkAlone(node, entity))
      expect(new Set(free.map(({ reason }) => reason))).toEqual(new Set(['allowed']))
    }
  })

  it('when it is an override', async () => {
    const node = await startThreads()
    for (let round = 1; round <= ROUNDS; round++) {
      const override = { dimension: 'user', entity: 'u1', resource: '*', terms: { limit: 500 + round } }
      await changed(node, 'PUT /admin/overrides', override)
      const answers = await atOnce(() => checkAlone(node, 'u1'))
      expect(new Set(answers.map(({ limit }) => limit))).toEqual(new Set([500 + round]))
    }
  })

  it('when it is a key that is made, or revoked', async () => {
    const node = await startThreads()
    const statusWith = async (token: string): Promise<number> => {
      const headers = { Authorization: `Bearer ${token}`, Connection: 'close' }
      return (await fetch(`${node.origin}/admin/incident`, { headers })).status
    }
    for (let round = 0; round < ROUNDS; round++) {
      const made = await changed(node, 'POST /admin/api-keys', { name: `key ${round}`, role: 'viewer' })
      const { token, apiKey } = (await made.json()) as IssuedApiKey
      expect(new Set(await atOnce(() => statusWith(token)))).toEqual(new Set([200]))
      await changed(node, `DELETE /admin/api-keys/${apiKey.id}`)
      expect(await atOnce(() => statusWith(token))).not.toContain(200)
    }
  })

  it('also in a thread that is being started again meanwhile', async () => {
    const node = await startThreads()
    await workers[0]!.terminate()
    // The limit goes up with every change, until the new thread has answered for a while.
    let rounds = 0
    for (let limit = 1001; limit < 3000 && rounds < ROUNDS; limit++) {
      const rules = [{ dimension: 'user', limit, window: '1m' }]
      await changed(node, 'PUT /admin/ratelimits', { resource: '/x', rules })
      const answers = await Promise.all(Array.from({ length: 6 }, () => checkAlone(node, 'u1')))
      expect(new Set(answers.map((answer) => answer.limit))).toEqual(new Set([limit]))
      if (answers.some((answer) => threadOf(answer) === 0)) rounds++
    }
    expect(rounds).toBe(ROUNDS)
  })
})
