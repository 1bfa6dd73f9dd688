import { createLimiter } from '@sluice/core'
import { type RedisServer, startRedis, startRedisCluster } from '@sluice/testing/servers'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { redisStore } from '../redis-store.ts'
import { sum } from './ground.test.support.ts'

const server = await startRedis()
const cluster = await startRedisCluster({ masters: 3, replicasPerMaster: 0 })
const patient = { deadlineMs: 20_000, failureMode: 'closed' as const, denyCache: false as const }

afterAll(async () => {
  await server.close()
  await cluster.close()
})

const rules = {
  one: { limit: 1000, window: '1h' as const },
  three: {
    algorithm: 'sliding-window-counter' as const,
    windows: [
      { limit: 1000, window: '1m' as const },
      { limit: 5000, window: '1h' as const },
      { limit: 9000, window: '1d' as const },
    ],
  },
  log: { algorithm: 'sliding-window-log' as const, limit: 1000, window: '1h' as const },
}

/** Calls of scripts that servers counted, without heartbeats. Of all scripts only that of heartbeats uses ZCARD. */
async function scriptCalls(servers: readonly RedisServer[]): Promise<number> {
  const infos = await Promise.all(servers.map((one) => one.command('INFO', 'commandstats')))
  const callsOf = (command: string): number =>
    sum(infos.map((info) => Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(String(info))?.[1] ?? 0)))
  return callsOf('eval') + callsOf('evalsha') - callsOf('zcard')
}

const KEYS = Array.from({ length: 60 }, (_, index) => `user-${index}`)

describe.each(['one server', 'a cluster'] as const)('on %s', (where) => {
  const servers = where === 'one server' ? [server] : cluster.nodes.map((node) => node.server)
  const target = where === 'one server' ? server.url : cluster.urls
  const options = { ...patient, cluster: where === 'a cluster' }

  it('one decision about one caller is one call, by one limit, three windows or three rules', async () => {
    const store = redisStore(target, { ...options, prefix: 'trips' })
    onTestFinished(() => store.close())
    const limiters = createLimiter<keyof typeof rules, 'async'>({ store, rules })
    const questions = {
      'one limit': (key: string) => limiters.limiter('one').check(key),
      'three windows': (key: string) => limiters.limiter('three').check(key),
      'three rules': (key: string) =>
        limiters.checkAll([
          { rule: 'one', key },
          { rule: 'log', key },
          { rule: 'three', key },
        ]),
      'a look': (key: string) => limiters.limiter('three').peek(key),
    }
    // Afterwards all servers know the scripts, and the store is done with looking at them.
    for (const key of KEYS) await limiters.limiter('one').check(key)
    for (const [name, ask] of Object.entries(questions)) {
      const before = await scriptCalls(servers)
      for (const key of KEYS) expect(await ask(key)).toMatchObject({ allowed: true, failure: undefined })
      expect({ name, calls: (await scriptCalls(servers)) - before }).toEqual({ name, calls: KEYS.length })
    }
  })
})
