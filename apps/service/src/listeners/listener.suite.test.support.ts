import { freePort } from '@sluice/testing/servers'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunningNode } from '../service.fixture.ts'
import { startRealService, startService } from '../service.fixture.ts'
import type { RedisSettings, Settings } from '../settings/settings.ts'
import type { ListenerName } from './listener.ts'

/** A call that a listener checks. */
export interface ListenerCall {
  readonly user: string
  readonly tokens?: number
}

/** What every protocol says of a decision. */
export interface ListenerAnswer {
  readonly allowed: boolean
  /** Null where nothing is known. */
  readonly remaining: number | null
}

/** A client of one listener. The calls are to the resource `/suite`, or what the protocol has in place of it. */
export interface ListenerClient {
  check(call: ListenerCall): Promise<ListenerAnswer>
  peek(call: ListenerCall): Promise<ListenerAnswer>
  /** Calls that cannot be understood: resolves with the texts of their errors. */
  mistakes(): Promise<readonly string[]>
  close(): Promise<void>
}

/** A protocol under test. */
export interface ListenerCase {
  /** As in metrics and in `/readyz`. */
  readonly listener: ListenerName
  readonly settings: Partial<Settings>
  readonly connect: (node: RunningNode) => Promise<ListenerClient>
  /** Sets the rules: {@link LIMIT} per user and hour. Default: a rule for the resource `/suite`. */
  readonly prepare?: (node: RunningNode) => Promise<void>
  /** The same call by the HTTP API: whether it was allowed. Default: a check of the resource `/suite`. */
  readonly overHttp?: (node: RunningNode, user: string) => Promise<boolean>
  /** Whether a call can say what it costs; where it cannot, every call takes one unit. Default: true. */
  readonly takesCost?: boolean
  /** Whether a call can ask without taking: at any cost, without one, or not at all. Default: `any`. */
  readonly peeks?: 'any' | 'free' | 'none'
  /** What clients need, as `/readyz` says it. Default: nothing. */
  readonly access?: string
}

/** Units per user and hour. */
export const LIMIT = 10

const UNREACHABLE: Omit<RedisSettings, 'urls' | 'failureMode'> = {
  isCluster: false,
  sentinel: undefined,
  prefix: 'sluice',
  leases: false,
  deadlineMs: 50,
}

async function putRule(node: RunningNode): Promise<void> {
  const rule = { dimension: 'user', limit: LIMIT, window: '1h' }
  const body = { resource: '/suite', rules: [rule] }
  expect((await node.admin('PUT', '/admin/ratelimits', { body })).status).toBe(200)
}

async function checkOverHttp(node: RunningNode, user: string): Promise<boolean> {
  return (await node.check({ user, resource: '/suite' })).ok
}

/** What every listener must do. */
export function listenerSuite(
  name: string,
  { listener, settings, connect, prepare = putRule, overHttp = checkOverHttp, ...able }: ListenerCase,
): void {
  const { takesCost = true, peeks = 'any', access = 'no API key' } = able
  async function ready(node: RunningNode): Promise<{ readonly node: RunningNode; readonly client: ListenerClient }> {
    onTestFinished(() => node.stop())
    await prepare(node)
    const client = await connect(node)
    onTestFinished(() => client.close())
    return { node, client }
  }
  const start = async (more: Partial<Settings> = {}): ReturnType<typeof ready> =>
    await ready(await startService({ ...settings, ...more }))
  const startReal = async (more: Partial<Settings> = {}): ReturnType<typeof ready> =>
    await ready(await startRealService({ ...settings, ...more }))

  describe(`the ${name} listener`, () => {
    it('allows what the limit has, and denies what is beyond', async () => {
      const { client } = await start()
      for (let left = LIMIT - 1; left >= 0; left--) {
        expect(await client.check({ user: 'a' })).toEqual({ allowed: true, remaining: left })
      }
      expect(await client.check({ user: 'a' })).toEqual({ allowed: false, remaining: 0 })
      expect(await client.check({ user: 'b' })).toEqual({ allowed: true, remaining: LIMIT - 1 })
    })

    if (takesCost) {
      it('takes the cost of a call, all or nothing', async () => {
        const { client } = await start()
        expect(await client.check({ user: 'a', tokens: 7 })).toEqual({ allowed: true, remaining: 3 })
        expect(await client.check({ user: 'a', tokens: 4 })).toEqual({ allowed: false, remaining: 3 })
        expect(await client.check({ user: 'a', tokens: 3 })).toEqual({ allowed: true, remaining: 0 })
      })
    }

    if (peeks !== 'none') {
      it('peeks without taking', async () => {
        const { client } = await start()
        await client.check({ user: 'a', tokens: 4 })
        for (let time = 0; time < 3; time++) {
          expect(await client.peek({ user: 'a' })).toEqual({ allowed: true, remaining: 6 })
        }
        if (peeks !== 'any') return
        expect(await client.peek({ user: 'a', tokens: 7 })).toEqual({ allowed: false, remaining: 6 })
      })
    }

    it('shares its limits with the HTTP API, to the unit', async () => {
      const { node, client } = await start()
      const both = Array.from({ length: 2 * LIMIT }, async (_, index) =>
        index % 2 === 0 ? await overHttp(node, 'a') : (await client.check({ user: 'a' })).allowed,
      )
      expect((await Promise.all(both)).filter(Boolean)).toHaveLength(LIMIT)
      expect([await overHttp(node, 'a'), (await client.check({ user: 'a' })).allowed]).toEqual([false, false])
    })

    it('shares its limits between threads', async () => {
      const { node } = await startReal({ threads: 2 })
      const clients = await Promise.all(Array.from({ length: 8 }, () => connect(node)))
      const allowed = await Promise.all(
        clients.map(async (client) => {
          let count = 0
          for (let call = 0; call < LIMIT; call++) if ((await client.check({ user: 'a' })).allowed) count++
          await client.close()
          return count
        }),
      )
      expect(allowed.reduce((sum, count) => sum + count, 0)).toBe(LIMIT)
    })

    it.each([
      ['open', { allowed: true, remaining: null }],
      ['closed', { allowed: false, remaining: 0 }],
    ] as const)('decides by the failure mode %s while the store is unavailable', async (failureMode, answer) => {
      const urls = [`redis://127.0.0.1:${await freePort()}`]
      const { client } = await startReal({ redis: { ...UNREACHABLE, urls, failureMode } })
      expect(await client.check({ user: 'a' })).toEqual(answer)
    })

    it('says what is wrong with a call, counts nothing, and answers the next', async () => {
      const { node, client } = await start()
      const texts = await client.mistakes()
      expect(texts.length).toBeGreaterThan(0)
      for (const text of texts) expect(text).toMatch(/expected|unknown|malformed|JSON|has no value|credential|route/i)
      expect(await client.check({ user: 'a' })).toEqual({ allowed: true, remaining: LIMIT - 1 })
      expect(node.errors).toEqual([])
    })

    it('answers what it has begun when it stops under load, and answers nothing halfway', async () => {
      const { node, client } = await startReal()
      const clients = [client, ...(await Promise.all(Array.from({ length: 7 }, () => connect(node))))]
      let answered = 0
      const busy = clients.map(async (one, index) => {
        for (;;) {
          try {
            const { allowed } = await one.check({ user: `u${index}`, tokens: 0 })
            expect(allowed || !takesCost).toBe(true)
            answered++
          } catch (error) {
            return error
          }
        }
      })
      await expect.poll(() => answered, { timeout: 30_000 }).toBeGreaterThan(100)
      await node.service.stop({ drains: true })
      // Each client sees a connection that ends, and no answer that is none.
      for (const error of await Promise.all(busy))
        expect(String(error)).toMatch(/clos|fetch failed|ECONN|socket|UNAVAILABLE/i)
      expect(node.errors).toEqual([])
      await Promise.all(clients.map((one) => one.close()))
    })

    it('is listed in /readyz and in metrics', async () => {
      const { node } = await start()
      const text = await (await fetch(`${node.origin}/readyz`)).text()
      expect(text).toMatch(new RegExp(`"name":"listener ${listener}","ready":true,"detail":"127.0.0.1:\\d+; ${access}`))
      const shown = await (await fetch(`${node.adminOrigin}/metrics`)).text()
      expect(shown).toMatch(new RegExp(`sluice_listener_connections\\{listener="${listener}"\\} [1-9]`))
    })
  })
}
