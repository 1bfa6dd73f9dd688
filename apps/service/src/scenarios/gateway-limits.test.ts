import type { RedisServer } from '@sluice/testing/servers'
import { startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import type { GatewayProcess, Site } from './gateway-process.test.support.ts'
import { ask, CLIENTS, LIMIT, openSite, startGateway, writeConfig } from './gateway-process.test.support.ts'

// Several gateways on one Redis are one gateway to their callers.

let redis: RedisServer
let site: Site

beforeAll(async () => {
  redis = await startRedis()
  site = await openSite()
})

afterAll(async () => {
  await redis.close()
  await site.close()
})

/** Settings of gateways that share their limits under a name. */
function shared(name: string, server: RedisServer): Readonly<Record<string, string>> {
  return {
    ...{ REDIS_URL: server.url, SLUICE_REDIS_PREFIX: name },
    ...{ SLUICE_FAILURE_MODE: 'closed', SLUICE_STORE_DEADLINE_MS: '5000' },
  }
}

/** Two gateways that share their limits with each other only. */
async function startTogether(name: string): Promise<readonly [GatewayProcess, GatewayProcess]> {
  const config = writeConfig(site, `${name}.yaml`, ['/limited'])
  const more = shared(name, redis)
  return await Promise.all([
    startGateway(site, config, more),
    startGateway(site, config, { ...more, SLUICE_THREADS: '2' }),
  ])
}

it('gateways admit exactly the limit together', async () => {
  const nodes = await startTogether('together')
  const statuses = new Map<number, number>()
  const client = async (index: number): Promise<void> => {
    for (let call = 0; call < 40; call++) {
      const [status] = await ask(nodes[index % 2]!, '/limited')
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(index)))
  expect(Object.fromEntries(statuses)).toEqual({ 200: LIMIT, 429: CLIENTS * 40 - LIMIT })
})

it('gateways lose only what is in flight on the one that dies', async () => {
  const [dying, other] = await startTogether('death')
  const seen = { 200: 0, 429: 0, lost: 0 }
  /** Asks a gateway. False if it died before it answered. */
  const count = async (node: GatewayProcess): Promise<boolean> => {
    const answer = await ask(node, '/limited').catch((error: unknown) => {
      if (node === other) throw error
      return undefined
    })
    if (answer === undefined) seen.lost++
    else seen[answer[0] as 200 | 429]++
    return answer !== undefined
  }
  const client = async (index: number): Promise<void> => {
    let node = index % 2 === 0 ? dying : other
    while (seen[429] < 50) {
      if (!(await count(node))) node = other
      if (seen[200] === LIMIT / 2) dying.child.kill('SIGKILL')
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(index)))
  // A request that was lost was charged or not; no other request got its unit.
  expect(Object.keys(seen)).toEqual(['200', '429', 'lost'])
  expect(seen.lost).toBeLessThanOrEqual(CLIENTS / 2)
  expect(seen[200]).toBeLessThanOrEqual(LIMIT)
  expect(seen[200]).toBeGreaterThanOrEqual(LIMIT - seen.lost)
})

it('a gateway without Redis decides by failure mode: closed admits nothing until it is back', async () => {
  const away = await startRedis()
  onTestFinished(() => away.close())
  const config = writeConfig(site, 'outage.yaml', ['/limited'])
  const node = await startGateway(site, config, { ...shared('outage', away), SLUICE_STORE_DEADLINE_MS: '500' })
  const status = async (): Promise<number> => (await ask(node, '/limited'))[0]
  await expect.poll(status, { timeout: 10_000 }).toBe(200)
  await away.stop()
  await expect.poll(status, { timeout: 10_000 }).not.toBe(200)
  const during = await Promise.all(Array.from({ length: 50 }, status))
  expect(during.filter((code) => code === 200)).toEqual([])
  await away.restart()
  await expect.poll(status, { timeout: 20_000 }).toBe(200)
})
