import { once } from 'node:events'
import { Agent, request as httpRequest } from 'node:http'
import { CHECK_PATH } from '@sluice/contract'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { RunningNode } from '../service.fixture.ts'
import { startRealService } from '../service.fixture.ts'

// A node is taken out of service while it is used: nobody notices.

const CLIENTS = 16

/** What clients of a load balancer saw. */
interface Seen {
  answered: number
  readonly failures: unknown[]
  /** Answers while the node was already stopping. */
  whileStopping: number
}

/**
 * Clients that keep connections open and ask without a pause, behind something that looks whether the node is ready and sends
 * requests elsewhere when it is not. They come back when they are sent elsewhere.
 */
async function load({ port }: RunningNode, seen: Seen): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
  let isReady = true
  const look = async (): Promise<void> => {
    while (isReady) {
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
    }
  }
  await Promise.all([look(), ...Array.from({ length: CLIENTS }, (_, name) => client(name))])
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
  it.each([1, 2])('with %d threads is not ready first, and fails no request', async (threads) => {
    const node = await startRealService({ threads, drainMs: 10_000 })
    const seen: Seen = { answered: 0, failures: [], whileStopping: 0 }
    const loaded = load(node, seen)
    await vi.waitUntil(() => seen.answered >= 500, 30_000)
    const stopped = node.service.stop({ drains: true })
    await loaded
    await stopped
    await node.stop()
    expect(seen.failures).toEqual([])
    expect(seen.whileStopping).toBeGreaterThan(0)
    expect(node.errors).toEqual([])
  })

  it('drains no longer than it takes: with nobody connected it is over at once', async () => {
    const node = await startRealService({ drainMs: 600_000 })
    onTestFinished(() => node.stop())
    await node.service.stop({ drains: true })
    await expect(fetch(`${node.origin}/livez`)).rejects.toThrow()
  })
})
