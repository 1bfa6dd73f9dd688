import type { RedisServer } from '@sluice/testing/servers'
import { startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, expect, it } from 'vitest'
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

/** Two gateways that share their limits with each other only. */
async function startTogether(name: string): Promise<readonly [GatewayProcess, GatewayProcess]> {
  const config = writeConfig(site, `${name}.yaml`, ['/limited'])
  const more = {
    ...{ REDIS_URL: redis.url, SLUICE_REDIS_PREFIX: name },
    ...{ SLUICE_FAILURE_MODE: 'closed', SLUICE_STORE_DEADLINE_MS: '5000' },
  }
  return await Promise.all([
    startGateway(site, config, more),
    startGateway(site, config, { ...more, SLUICE_THREADS: '2' }),
  ])
}

it('gateways admit exactly the limit together', async () => {
  const nodes = await startTogether('together')
  const statuses = new Map<number, number>()
  const client = async (index: number): Promise<void> => {
    for (let call = 0; call < 100; call++) {
      const [status] = await ask(nodes[index % 2]!, '/limited')
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(index)))
  expect(Object.fromEntries(statuses)).toEqual({ 200: LIMIT, 429: CLIENTS * 100 - LIMIT })
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
    while (seen[429] < 100) {
      if (!(await count(node))) node = other
      if (seen[200] === LIMIT / 2) dying.child.kill('SIGKILL')
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(index)))
  // A request that was lost was charged or not; nobody else got its unit.
  expect(Object.keys(seen)).toEqual(['200', '429', 'lost'])
  expect(seen.lost).toBeLessThanOrEqual(CLIENTS / 2)
  expect(seen[200]).toBeLessThanOrEqual(LIMIT)
  expect(seen[200]).toBeGreaterThanOrEqual(LIMIT - seen.lost)
})
