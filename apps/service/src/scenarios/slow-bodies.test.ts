import { CHECK_PATH } from '@sluice/contract'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunningNode } from '../service.fixture.ts'
import { RawConnection, startRealService } from '../service.fixture.ts'

// Clients that begin a request and do not end it take nothing from those that do.

const CAPACITY = 16

/** More than the requests other than checks that a thread has in flight at most. */
const ADMIN_CLIENTS = 250

async function start(): Promise<RunningNode> {
  const node = await startRealService({ maxInFlight: CAPACITY })
  onTestFinished(() => node.stop())
  return node
}

/** Opens requests of which one byte of the body comes; resolves when the service has begun with all of them. */
async function openSlow(
  { port }: RunningNode,
  count: number,
  { path, headers = '' }: { readonly path: string; readonly headers?: string },
): Promise<readonly RawConnection[]> {
  const connections = Array.from({ length: count }, () => {
    const connection = new RawConnection(port)
    onTestFinished(() => connection.close())
    connection.send(
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n` +
        `Expect: 100-continue\r\n${headers}\r\n`,
    )
    return connection
  })
  for (const connection of connections) {
    await connection.until('100 Continue')
    connection.send('{')
  }
  return connections
}

/** The results of `count` checks, by status. */
async function checkStatuses({ check }: RunningNode, count: number): Promise<ReadonlySet<number>> {
  const statuses = new Set<number>()
  for (let asked = 0; asked < count; asked++) {
    const response = await check({ userId: `u${asked}`, resource: '/x' })
    await response.arrayBuffer()
    statuses.add(response.status)
  }
  return statuses
}

describe('slow bodies', () => {
  it('of checks, many times as many as fit, leave room for all other checks', async () => {
    const node = await start()
    const slow = await openSlow(node, 20 * CAPACITY, { path: CHECK_PATH })
    expect(await checkStatuses(node, 3 * CAPACITY)).toEqual(new Set([200]))
    // They were not cut either: one that goes on is answered.
    const rest = '"userId":"slow","resource":"/x"}'
    slow[0]!.send(rest + ' '.repeat(999 - rest.length))
    expect(await slow[0]!.until('"allowed"')).toContain('HTTP/1.1 200')
    expect(node.errors).toEqual([])
  })

  it('with a key of the lowest role do not lock others out of the admin API', async () => {
    const node = await start()
    const made = await node.admin('POST', '/admin/api-keys', { body: { name: 'viewer', role: 'viewer' } })
    const { token } = (await made.json()) as { token: string }
    await openSlow(node, ADMIN_CLIENTS, { path: '/admin/explain', headers: `Authorization: Bearer ${token}\r\n` })
    for (let asked = 0; asked < 5; asked++) {
      expect((await node.admin('GET', '/admin/ratelimits')).status).toBe(200)
      const body = { resource: '/x', userId: 'u1' }
      expect((await node.admin('POST', '/admin/explain', { body })).status).toBe(200)
    }
    expect(await checkStatuses(node, CAPACITY)).toEqual(new Set([200]))
  })
})
