import type { Worker } from 'node:worker_threads'
import type { CheckAnswer } from '@sluice/contract'
import { decodeSnowflake } from '@sluice/runtime'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { RunningNode } from '../service.fixture.ts'
import { startRealService } from '../service.fixture.ts'

// Several threads listen on one port, and are one service.

const THREADS = 2

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
  it('hold one limit together, exactly', async () => {
    const node = await startThreads()
    // Nothing flows back meanwhile, however long it takes.
    const rules = [{ dimension: 'user', algorithm: 'fixed-window', limit: 90, window: '365d' }]
    expect((await node.admin('PUT', '/admin/ratelimits', { body: { resource: '/x', rules } })).status).toBe(200)
    await expect
      .poll(async () => new Set(await limitsSeen(node)), { timeout: 30_000, interval: 50 })
      .toEqual(new Set([90]))
    const answers = await Promise.all(Array.from({ length: 400 }, () => checkAlone(node, 'all-want-this')))
    const allowed = answers.filter((answer) => answer.allowed)
    expect(allowed).toHaveLength(90)
    expect(new Set(answers.map(threadOf))).toEqual(new Set([0, 1]))
    expect(new Set(answers.map(({ decisionId }) => decisionId)).size).toBe(400)
  })

  it('show all they counted, whichever is asked', async () => {
    const node = await startThreads()
    const answers = await Promise.all(Array.from({ length: 40 }, (_, user) => checkAlone(node, `user-${user}`)))
    expect(new Set(answers.map(threadOf)).size).toBe(THREADS)
    for (let asked = 0; asked < 4; asked++) {
      const page = await (await fetch(`${node.origin}/metrics`, { headers: { Connection: 'close' } })).text()
      expect(page).toMatch(/^ratelimit_decisions_total\{reason="allowed"\} 40$/m)
      expect(page).toMatch(/^sluice_threads 2$/m)
    }
  })

  it('go by changed rules, wherever the change was made', async () => {
    const node = await startThreads()
    const rules = [{ dimension: 'user', limit: 7, window: '1m' }]
    expect((await node.admin('PUT', '/admin/ratelimits', { body: { resource: '/x', rules } })).status).toBe(200)
    await expect
      .poll(async () => new Set(await limitsSeen(node)), { timeout: 30_000, interval: 50 })
      .toEqual(new Set([7]))
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
    expect(node.errors).toMatchObject([{ message: 'a thread ended and is started again', thread: 0 }])
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

async function limitsSeen(node: RunningNode): Promise<readonly (number | null)[]> {
  const answers = await Promise.all(Array.from({ length: 12 }, (_, user) => checkAlone(node, `rules-${user}`)))
  return answers.map(({ limit }) => limit)
}
