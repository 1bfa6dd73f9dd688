import { join } from 'node:path'
import { type Clock, systemClock } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { RuleSet } from '@sluice/core/policy'
import { type PostgresServer, startPostgres } from '@sluice/testing/servers'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { ConfigStore } from '../config-store.ts'
import type { ConfigEvent } from '../follow/config-follower.ts'
import { type FollowOptions, followConfig } from '../follow/follow-config.ts'
import { openConfigStore } from '../open-config-store.ts'
import { temporaryFolder, until } from '../waiting.test.support.ts'
import { allowedOf, engineNode } from './engine-node.test.support.ts'

const AUTHOR = { name: 'operator' }
const HOUR_MS = 3_600_000

/** Windows longer than the test, so that nothing refills meanwhile. */
const withLimit = (limit: number): RuleSet => ({
  rules: [{ resource: '/orders', dimension: 'user', limit, window: HOUR_MS }],
})

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
})

afterAll(() => server.close())

beforeEach(async () => {
  if (server.status === 'paused') server.resume()
  if (server.status === 'ended') await server.restart()
})

/** A clock that can be set ahead while everything else takes the time it takes. */
class MovedClock implements Clock {
  aheadMs = 0

  nowMicros(): number {
    return systemClock.nowMicros() + this.aheadMs * MICROS_PER_MS
  }
}

async function openStore(url: string): Promise<ConfigStore> {
  const store = await openConfigStore(url, { deadlineMs: 500 })
  onTestFinished(() => store.close())
  return store
}

function follow(options: Omit<FollowOptions, 'target'>) {
  const node = engineNode()
  const events: ConfigEvent[] = []
  const observe = (event: ConfigEvent): void => void events.push(event)
  const follower = followConfig({ target: node.target, observe, pollMs: 300, ...options })
  onTestFinished(() => follower.close())
  return { ...node, follower, events }
}

const FAILURES = {
  'is stopped': [() => server.stop(), () => server.restart()],
  'is killed': [() => server.kill(), () => server.restart()],
  hangs: [() => server.pause(), async () => server.resume()],
} satisfies Record<string, readonly [() => Promise<void>, () => Promise<void>]>

describe.each(Object.entries(FAILURES))('PostgreSQL away (it %s)', (_, [fail, recover]) => {
  it('enforces the last good rules, rejects writes, reports staleness, and recovers without a restart', async () => {
    const { url } = await server.createDatabase()
    const store = await openStore(url)
    const { number } = await store.versions.create(withLimit(2), AUTHOR, 0)
    await store.versions.stage(number, { stage: 'enforce' }, AUTHOR)
    await store.overrides.put({ dimension: 'user', entity: 'vip', resource: '*', terms: { limit: 5 } }, AUTHOR)
    const clock = new MovedClock()
    const { engine, follower, events } = follow({ feed: store.feed, clock })
    await follower.ready()
    expect([allowedOf(engine, 'before', 9), allowedOf(engine, 'vip', 9)]).toEqual([2, 5])
    expect(follower.stats().lagMs).toBe(0)

    await fail()
    await until('it is noticed', () => follower.stats().failures > 0)
    expect([allowedOf(engine, 'during', 9), allowedOf(engine, 'vip', 9)]).toEqual([2, 0])
    const write = store.overrides.put({ dimension: 'user', entity: 'x', resource: '*', terms: { limit: 1 } }, AUTHOR)
    await expect(write).rejects.toMatchObject({ code: 'SLUICE_CONFIG_UNAVAILABLE' })
    clock.aheadMs += 600_000
    expect(follower.stats()).toMatchObject({ source: 'database', enforcedVersion: number })
    expect(follower.stats().lagMs).toBeGreaterThan(599_000)
    expect(events.filter(({ type }) => type === 'unavailable')).toHaveLength(1)

    await recover()
    await until('it is noticed', () => events.some(({ type }) => type === 'recovered'))
    await until('nothing is stale', () => follower.stats().lagMs === 0)
    await until('writes succeed', () =>
      store.versions
        .edit(() => withLimit(4), AUTHOR)
        .then(
          () => true,
          () => false,
        ),
    )
    await until('the change is in force', () => allowedOf(engine, 'during', 9) > 0)
    expect(engine.version).toBeGreaterThan(number)
    expect(allowedOf(engine, 'after', 9)).toBe(4)
  })
})

describe('PostgreSQL away at the start', () => {
  it('a node starts with the last good configuration on disk, and follows the database when it is back', async () => {
    const { url } = await server.createDatabase()
    const path = join(await temporaryFolder(), 'config.cache')
    const store = await openStore(url)
    await store.versions.edit(() => withLimit(3), AUTHOR)
    await store.overrides.put({ dimension: 'user', entity: 'vip', resource: '*', terms: { limit: 7 } }, AUTHOR)
    const first = follow({ feed: store.feed, cache: { path } })
    await first.follower.ready()
    await first.follower.close()

    await server.stop()
    const feed = async () => (await openStore(url)).feed
    const { engine, follower, events } = follow({ feed, cache: { path } })
    await follower.ready()
    expect(follower.stats()).toMatchObject({ source: 'disk', enforcedVersion: 1 })
    expect([allowedOf(engine, 'u1', 9), allowedOf(engine, 'vip', 9)]).toEqual([3, 7])

    await server.restart()
    await until('it is followed', () => events.some(({ type }) => type === 'recovered'))
    expect(follower.stats()).toMatchObject({ source: 'database', lagMs: 0 })
    await store.versions.edit(() => withLimit(5), AUTHOR)
    await until('the change is in force', () => engine.version === 2)
    expect(allowedOf(engine, 'u2', 9)).toBe(5)
  })

  it('without a copy on disk the node says that it is not ready, and is as soon as the database is there', async () => {
    const { url } = await server.createDatabase()
    await (await openStore(url)).versions.edit(() => withLimit(3), AUTHOR)
    await server.stop()
    const feed = async () => (await openStore(url)).feed
    const { engine, follower } = follow({ feed, waitMs: 300 })
    await expect(follower.ready()).rejects.toMatchObject({ code: 'SLUICE_CONFIG_UNAVAILABLE' })
    await server.restart()
    await until('it is followed', () => follower.stats().source === 'database')
    await follower.ready()
    expect(engine.version).toBe(1)
  })
})
