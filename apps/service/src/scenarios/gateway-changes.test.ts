import { Agent } from 'node:http'
import { systemSleep } from '@sluice/runtime'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import type { GatewayProcess, Site } from './gateway-process.test.support.ts'
import { ask, CLIENTS, openSite, startGateway, writeConfig } from './gateway-process.test.support.ts'

// A gateway is changed and stopped while it is used, without a failed request.

/** How often a load balancer looks whether a node is ready. */
const LOOK_EVERY_MS = 250

let site: Site

beforeAll(async () => {
  site = await openSite()
})

afterAll(() => site.close())

/** What clients saw. */
interface Seen {
  answered: number
  /** Answers that close the connection. */
  closing: number
  readonly failures: unknown[]
}

/** Clients that send requests to `/a` until `isOver`. */
async function load(node: GatewayProcess, seen: Seen, isOver: () => boolean): Promise<void> {
  const client = async (): Promise<void> => {
    while (!isOver()) {
      try {
        const [status, connection] = await ask(node, '/a')
        if (status !== 200) throw new Error(`status ${status}`)
        seen.answered++
        if (connection === 'close') seen.closing++
      } catch (error) {
        seen.failures.push(error)
      }
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
}

it('a gateway takes other routes without a failed request', async () => {
  const node = await startGateway(site, writeConfig(site, 'reload.yaml', ['/a']), { SLUICE_THREADS: '2' })
  const seen: Seen = { answered: 0, closing: 0, failures: [] }
  let isOver = false
  const busy = load(node, seen, () => isOver)
  const fresh = { port: node.port, agent: new Agent({ keepAlive: false }) }
  for (const path of ['/b', '/c', '/d']) {
    const before = seen.answered
    await vi.waitUntil(() => seen.answered > before + 200, 20_000)
    writeConfig(site, 'reload.yaml', ['/a', path])
    // In every thread: a new connection goes to any of them.
    let inRow = 0
    const isInUse = async (): Promise<boolean> => {
      inRow = (await ask(fresh, path))[0] === 200 ? inRow + 1 : 0
      return inRow === 10
    }
    await vi.waitUntil(isInUse, { timeout: 20_000, interval: 5 })
  }
  isOver = true
  await busy
  expect(seen.failures).toEqual([])
})

it('a gateway is stopped without a failed request, and ends with 0', async () => {
  const node = await startGateway(site, writeConfig(site, 'drain.yaml', ['/a']), { SLUICE_DRAIN_MS: '1500' })
  const seen: Seen = { answered: 0, closing: 0, failures: [] }
  let isReady = true
  const look = async (): Promise<void> => {
    while (isReady) {
      await systemSleep(LOOK_EVERY_MS)
      const readiness = await fetch(`${node.origin}/readyz`, { headers: { Connection: 'close' } })
      await readiness.body?.cancel()
      isReady = readiness.status === 200
    }
  }
  const busy = Promise.all([look(), load(node, seen, () => !isReady)])
  await vi.waitUntil(() => seen.answered > 500, 20_000)
  node.child.kill('SIGTERM')
  await busy
  expect(seen.failures).toEqual([])
  expect(seen.closing).toBeGreaterThan(0)
  expect((await node.ended)[0]).toBe(0)
})
