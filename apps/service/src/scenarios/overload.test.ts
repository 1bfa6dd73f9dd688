import { once } from 'node:events'
import { Agent, request as httpRequest } from 'node:http'
import { CHECK_PATH } from '@sluice/contract'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunningNode } from '../service.fixture.ts'
import { answerOf, startRealService, startService } from '../service.fixture.ts'

const CHECK = { userId: 'u1', resource: '/x' }

/** Checks that the service has in flight at most. */
const CAPACITY = 16

/** Factor of the load over the capacity. */
const OVERLOAD = 3

async function startSmall(): Promise<RunningNode> {
  const node = await startRealService({ maxInFlight: CAPACITY })
  onTestFinished(() => node.stop())
  return node
}

/** Results of clients that send requests without a pause. */
interface Load {
  readonly accepted: number
  readonly rejected: number
  /** For each that was accepted: how many answers others got between its question and its answer. */
  readonly overtaken: readonly number[]
}

/** `clients` clients, each on its own connection, make `each` checks each, one after the other. */
async function load({ port }: RunningNode, clients: number, each: number): Promise<Load> {
  const agent = new Agent({ keepAlive: true, maxSockets: clients })
  const seen = { accepted: 0, rejected: 0, overtaken: [] as number[] }
  const client = async (name: number): Promise<void> => {
    for (let asked = 0; asked < each; asked++) {
      const before = seen.accepted + seen.rejected
      const status = await askCheck(port, agent, `user-${name}`)
      if (status === 200) {
        seen.overtaken.push(seen.accepted + seen.rejected - before)
        seen.accepted++
      } else if (status === 503) seen.rejected++
      else throw new Error(`status ${status}`)
    }
  }
  await Promise.all(Array.from({ length: clients }, (_, name) => client(name)))
  agent.destroy()
  return seen
}

async function askCheck(port: number, agent: Agent, userId: string): Promise<number> {
  const headers = { 'Content-Type': 'application/json' }
  const asked = httpRequest({ host: '127.0.0.1', port, method: 'POST', path: CHECK_PATH, headers, agent })
  asked.end(JSON.stringify({ userId, resource: '/x', tokens: 0 }))
  const [response] = await once(asked, 'response')
  response.resume()
  await once(response, 'end')
  return response.statusCode
}

describe('three times as many checks as can be in flight', () => {
  it('are answered as well as ever as far as there is room, the others at once, and all when it is over', async () => {
    const node = await startSmall()
    const each = 40
    const peak = await load(node, CAPACITY, each)
    expect([peak.accepted, peak.rejected]).toEqual([CAPACITY * each, 0])
    const over = await load(node, OVERLOAD * CAPACITY, each)
    expect(over.accepted + over.rejected).toBe(OVERLOAD * CAPACITY * each)
    expect(over.rejected).toBeGreaterThan(0)
    // Of every three that come together one is accepted, whatever else is requested.
    expect(over.accepted).toBeGreaterThanOrEqual(peak.accepted)
    // No accepted request waits while others come and go: at most a few are answered meanwhile.
    const sorted = [...over.overtaken].sort((one, other) => one - other)
    expect(sorted[Math.floor(sorted.length * 0.99)]).toBeLessThanOrEqual(4 * OVERLOAD * CAPACITY)
    const after = await load(node, CAPACITY, each)
    expect([after.accepted, after.rejected]).toEqual([CAPACITY * each, 0])
    expect(node.errors).toEqual([])
  })

  it('that take long are rejected before the first of those in flight is answered', async () => {
    const node = await startSmall()
    const rules = [{ dimension: 'global', algorithm: 'concurrency', limit: CAPACITY, lease: '10m' }]
    expect((await node.admin('PUT', '/admin/ratelimits', { body: { resource: '/slow', rules } })).status).toBe(200)
    const acquire = (): Promise<Response> =>
      node.admin('POST', '/internal/ratelimit/acquire', { body: { resource: '/slow', maxWaitMs: 30_000 } })
    const held = async (asked: readonly Promise<Response>[]): Promise<readonly string[]> =>
      Promise.all(asked.map(async (one) => ((await (await one).json()) as { reservationId: string }).reservationId))
    const release = async (ids: readonly string[]): Promise<void> => {
      const released = ids.map((reservationId) =>
        node.admin('POST', '/internal/ratelimit/release', { body: { reservationId } }),
      )
      for (const one of released) expect((await one).status).toBe(200)
    }
    let slots = await held(Array.from({ length: CAPACITY }, acquire))
    for (let round = 0; round < 3; round++) {
      const underWay = new Set<Promise<Response>>()
      const rejected: number[] = []
      const asked = Array.from({ length: OVERLOAD * CAPACITY }, acquire)
      const rejections = new Promise<void>((resolve) => {
        for (const one of asked) {
          underWay.add(one)
          void one.then((response) => {
            if (response.status !== 503) return
            underWay.delete(one)
            expect(response.headers.get('retry-after')).toBe('1')
            if (rejected.push(response.status) === (OVERLOAD - 1) * CAPACITY) resolve()
          })
        }
      })
      // All slots are taken: accepted requests wait for as long as this test wants.
      await rejections
      expect(underWay.size).toBe(CAPACITY)
      for (const path of ['/livez', '/readyz', '/metrics']) expect((await fetch(node.origin + path)).status).toBe(200)
      // Releases are never rejected for lack of room: slots come back, and all accepted requests get theirs.
      const waiting = held([...underWay])
      await release(slots)
      slots = await waiting
      expect(new Set(slots).size).toBe(CAPACITY)
    }
    await release(slots)
    const again = await Promise.all(Array.from({ length: CAPACITY }, acquire))
    expect(again.map(({ status }) => status)).toEqual(Array.from({ length: CAPACITY }, () => 200))
    expect(node.errors).toEqual([])
  })
})

it('under too much load checks are turned away at once, health is not, and all is well when it is over', async () => {
  const { check, origin, admin, advance, setLoopDelay, stop } = await startService()
  onTestFinished(stop)
  expect((await check(CHECK)).status).toBe(200)
  setLoopDelay(1500)
  // It is looked at four times a second.
  advance(250_000)
  const rejected = await check(CHECK)
  expect(rejected.status).toBe(503)
  expect(rejected.headers.get('retry-after')).toBe('1')
  expect(await rejected.json()).toMatchObject({ code: 'SLUICE_HTTP_OVERLOADED' })
  for (const path of ['/livez', '/readyz', '/metrics']) expect((await fetch(origin + path)).status).toBe(200)
  expect((await admin('GET', '/admin/ratelimits')).status).toBe(200)
  // Not before it is well below what was too much.
  setLoopDelay(600)
  advance(250_000)
  expect((await check(CHECK)).status).toBe(503)
  setLoopDelay(400)
  advance(250_000)
  const again = await check(CHECK)
  expect(again.status).toBe(200)
  // What was turned away cost nothing.
  expect((await answerOf(again)).remaining).toBe(99)
})
