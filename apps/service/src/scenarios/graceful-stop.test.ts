import { once } from 'node:events'
import { Agent, request as httpRequest } from 'node:http'
import { CHECK_PATH } from '@sluice/contract'
import { systemSleep } from '@sluice/runtime'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { RunningNode } from '../service.fixture.ts'
import { startRealService, startService } from '../service.fixture.ts'

// A node is stopped under load without failed requests.

/** How clients behave. */
interface Clients {
  readonly count: number
  /** Whether they use a connection for more than one request. */
  readonly keepAlive: boolean
  /** Between an answer and the next request. */
  readonly pauseMs: number
}

const BUSY: Clients = { count: 16, keepAlive: true, pauseMs: 0 }

/** There are moments without any connection. */
const CALM: Clients = { count: 2, keepAlive: false, pauseMs: 20 }

/** How often a load balancer looks whether a node is ready. */
const LOOK_EVERY_MS = 1000

/** What clients of a load balancer saw. */
interface Seen {
  answered: number
  readonly failures: unknown[]
  /** Answers while the node was already stopping. */
  whileStopping: number
}

/**
 * Clients behind something that looks now and then whether the node is ready, and sends requests elsewhere when it is
 * not.
 */
async function load({ port }: RunningNode, seen: Seen, { count, keepAlive, pauseMs }: Clients): Promise<void> {
  const agent = new Agent({ keepAlive, maxSockets: count })
  let isReady = true
  const look = async (): Promise<void> => {
    while (isReady) {
      await systemSleep(LOOK_EVERY_MS)
      const [status] = await ask(port, { method: 'GET', path: '/readyz', agent: undefined })
      isReady = status === 200
    }
  }
  const client = async (name: number): Promise<void> => {
    const body = JSON.stringify({ userId: `user-${name}`, resource: '/x', tokens: 0 })
    while (isReady) {
      try {
        const [status, connection] = await ask(port, { method: 'POST', path: CHECK_PATH, agent, body })
        if (status !== 200) throw new Error(`status ${status}`)
        seen.answered++
        if (connection === 'close') seen.whileStopping++
      } catch (error) {
        seen.failures.push(error)
      }
      if (pauseMs > 0) await systemSleep(pauseMs)
    }
  }
  await Promise.all([look(), ...Array.from({ length: count }, (_, name) => client(name))])
  agent.destroy()
}

interface Asked {
  readonly method: string
  readonly path: string
  readonly agent: Agent | undefined
  readonly body?: string
}

async function ask(port: number, { method, path, agent, body }: Asked): Promise<[number, string | undefined]> {
  const headers = { 'Content-Type': 'application/json' }
  const asked = httpRequest({ host: '127.0.0.1', port, method, path, headers, ...(agent && { agent }) })
  asked.end(body)
  const [response] = await once(asked, 'response')
  response.resume()
  await once(response, 'end')
  return [response.statusCode, response.headers.connection]
}

describe('a node that is stopped under load', () => {
  it.each([
    [1, 'busy', BUSY, 500],
    [2, 'busy', BUSY, 500],
    [1, 'calm', CALM, 20],
    [2, 'calm', CALM, 20],
  ])('with %d threads and %s clients is not ready first, and fails no request', async (threads, _, clients, before) => {
    const node = await startRealService({ threads, drainMs: 3000 })
    const seen: Seen = { answered: 0, failures: [], whileStopping: 0 }
    const loaded = load(node, seen, clients)
    await vi.waitUntil(() => seen.answered >= before, 30_000)
    const stopped = node.service.stop({ drains: true })
    await loaded
    await stopped
    await node.stop()
    expect(seen.failures).toEqual([])
    // Each uses a connection that is not kept alive, and gets the usual response.
    if (clients.keepAlive) expect(seen.whileStopping).toBeGreaterThan(0)
    expect(node.errors).toEqual([])
  })

  it('serves for the whole drain time, even without connections', async () => {
    const node = await startService({ drainMs: 600_000 })
    onTestFinished(() => node.stop())
    const stopped = node.service.stop({ drains: true })
    expect((await fetch(`${node.origin}/readyz`)).status).toBe(503)
    const checked = await node.check({ userId: 'u', resource: '/x' })
    expect([checked.status, checked.headers.get('Connection')]).toEqual([200, 'close'])
    await node.endWaits(600_000)
    await stopped
    await expect(fetch(`${node.origin}/livez`)).rejects.toThrow()
  })

  it('does not wait without a drain', async () => {
    const node = await startService({ drainMs: 600_000 })
    onTestFinished(() => node.stop())
    await node.service.stop()
    await expect(fetch(`${node.origin}/livez`)).rejects.toThrow()
  })
})
