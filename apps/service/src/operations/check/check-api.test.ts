import { memoryStore, sharedMemoryStore } from '@sluice/core'
import { redisStore } from '@sluice/store-redis'
import { FakeClock } from '@sluice/testing'
import { startRedis } from '@sluice/testing/servers'
import { afterAll, describe, expect, it } from 'vitest'
import { checkSuite } from './check.suite.test.support.ts'
import type { OpenStore } from './check-api.test.support.ts'
import { CheckApi, perUser } from './check-api.test.support.ts'
import { envoySuite } from './envoy.suite.test.support.ts'
import { reportSuite } from './report.suite.test.support.ts'
import { reservationSuite } from './reservation.suite.test.support.ts'

const server = await startRedis()

afterAll(() => server.close())

let prefixes = 0

const STORES: Readonly<Record<string, OpenStore>> = {
  'in memory': (clock) => memoryStore({ clock }),
  'in shared memory': (clock) => sharedMemoryStore({ clock, maxKeys: 1000, maxStateSize: 64 }),
  'on Redis': async (clock) => {
    // The deny cache goes by a time of its own.
    const options = { clock, prefix: `test-${++prefixes}`, denyCache: false, deadlineMs: 10_000 } as const
    const store = redisStore(server.url, options)
    await store.ready()
    return store
  },
}

for (const [name, open] of Object.entries(STORES)) {
  checkSuite(name, open)
  reservationSuite(name, open)
  reportSuite(name, open)
  envoySuite(name, open)
}

/** Calls of scripts that the server counted. */
async function scriptCalls(): Promise<number> {
  const info = String(await server.command('INFO', 'commandstats'))
  const calls = [...info.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)].map(([, count]) => Number(count))
  return calls.reduce((sum, count) => sum + count, 0)
}

describe('a batch on Redis', () => {
  it.each([
    [1, 1],
    [30, 1],
    [60, 2],
    [100, 3],
  ])('of %d callers is %d calls, which leave together', async (callers, calls) => {
    // Time that stands still keeps heartbeats from going out among the calls that are counted.
    const options = { prefix: 'trips', monotonicMs: () => 1, denyCache: false, deadlineMs: 10_000 } as const
    const store = redisStore(server.url, options)
    try {
      await store.ready()
      const api = new CheckApi({ store, clock: new FakeClock(), ruleSet: perUser(1000) })
      const requests = Array.from({ length: callers }, (_, index) => ({ userId: `user-${index}`, resource: '/orders' }))
      await api.post('batch', { requests })
      const before = await scriptCalls()
      const { body } = await api.post('batch', { requests })
      expect((body['answers'] as readonly { allowed: boolean }[]).every(({ allowed }) => allowed)).toBe(true)
      expect((await scriptCalls()) - before).toBe(calls)
    } finally {
      await store.close()
    }
  })
})

describe('two processes on one Redis', () => {
  it('settle a reservation once, however often and wherever it is settled at the same time', async () => {
    const clock = new FakeClock()
    const options = { clock, prefix: 'two-processes', denyCache: false, deadlineMs: 10_000 } as const
    const stores = [redisStore(server.url, options), redisStore(server.url, options)]
    try {
      await Promise.all(stores.map((store) => store.ready()))
      const rules = [
        { resource: '/orders', dimension: 'user', algorithm: 'fixed-window', limit: 1000, window: '1d' },
      ] as const
      const nodes = stores.map((store) => new CheckApi({ store, clock, ruleSet: { rules } }))
      const [here] = nodes as [CheckApi, CheckApi]
      const ids: unknown[] = []
      for (let index = 0; index < 20; index++) {
        const { body } = await here.post('reserve', { userId: 'ann', resource: '/orders', tokens: 10 })
        ids.push(body['reservationId'])
      }
      const settleAll = (which: readonly unknown[]): Promise<unknown> =>
        Promise.all(
          which.flatMap((reservationId) => nodes.map((node) => node.post('settle', { reservationId, tokens: 4 }))),
        )
      await settleAll(ids.slice(0, 10))
      // The other half was given back by then, and is charged again.
      clock.advance(61_000)
      await settleAll(ids.slice(10))
      expect(await here.remaining({ userId: 'ann', resource: '/orders' })).toBe(1000 - 20 * 4)
    } finally {
      await Promise.all(stores.map((store) => store.close()))
    }
  })
})
