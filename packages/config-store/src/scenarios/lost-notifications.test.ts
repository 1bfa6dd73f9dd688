import type { RuleSet } from '@sluice/core/policy'
import { type PostgresServer, startPostgres } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { ChangeFeed, ConfigStore } from '../config-store.ts'
import type { ConfigEvent, ConfigFollower } from '../follow/config-follower.ts'
import { followConfig } from '../follow/follow-config.ts'
import { openConfigStore } from '../open-config-store.ts'
import { figure, until } from '../waiting.test.support.ts'
import { engineNode } from './engine-node.test.support.ts'

const AUTHOR = { name: 'operator' }
const POLL_MS = 1000

const withLimit = (limit: number): RuleSet => ({
  rules: [{ resource: '/orders', dimension: 'user', limit, window: '1h' }],
})

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
})

afterAll(() => server.close())

async function openStore(url: string): Promise<ConfigStore> {
  const store = await openConfigStore(url)
  onTestFinished(() => store.close())
  return store
}

/** A feed whose hints are all lost without an error. */
function deaf(feed: ChangeFeed): ChangeFeed {
  return {
    head: () => feed.head(),
    load: () => feed.load(),
    since: (position) => feed.since(position),
    watch: () => Promise.resolve(() => Promise.resolve()),
  }
}

async function follow(
  feed: ChangeFeed,
  pollMs = POLL_MS,
): Promise<{ follower: ConfigFollower; events: ConfigEvent[] }> {
  const events: ConfigEvent[] = []
  const observe = (event: ConfigEvent): void => void events.push(event)
  const follower = followConfig({ feed, target: engineNode().target, pollMs, observe })
  onTestFinished(() => follower.close())
  await follower.ready()
  return { follower, events }
}

describe('lost notifications', () => {
  it('nodes converge by polling within the interval, and the version skew is visible', async () => {
    const { url } = await server.createDatabase()
    const store = await openStore(url)
    const hearing = await follow((await openStore(url)).feed, 600_000)
    const missing = await follow(deaf((await openStore(url)).feed))
    await until('both follow', () => [hearing, missing].every(({ follower }) => follower.stats().refreshes > 1))
    let slowestMs = 0
    let skews = 0
    for (let number = 1; number <= 3; number++) {
      await store.versions.edit(() => withLimit(number), AUTHOR)
      await until('one has it', () => hasVersion(hearing.follower, number))
      if (!hasVersion(missing.follower, number)) skews++
      slowestMs = Math.max(slowestMs, await until('the other has it too', () => hasVersion(missing.follower, number)))
    }
    figure(`without hints a change came after at most ${Math.round(slowestMs)} ms, polling every ${POLL_MS} ms`)
    expect(slowestMs).toBeLessThan(POLL_MS + 1000)
    // A poll may come just then, but not every time.
    expect(skews).toBeGreaterThan(0)
    expect(missing.follower.stats()).toMatchObject({ notifications: 0, failures: 0 })
    expect(missing.follower.stats().polls).toBeGreaterThanOrEqual(3)
    expect(hearing.follower.stats()).toMatchObject({ polls: 0 })
  })

  it('a connection that hears notifications is cut: it is reported, and what changed meanwhile is found', async () => {
    const { url, name } = await server.createDatabase()
    const store = await openStore(url)
    const { follower, events } = await follow((await openStore(url)).feed, 600_000)
    await until('it listens', async () => (await listeners(name)).length === 1)
    await server.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}' AND query LIKE 'LISTEN%'`,
    )
    await store.versions.edit(() => withLimit(1), AUTHOR)
    await until('the change is in force', () => follower.stats().enforcedVersion === 1)
    expect(events.filter(({ type }) => type === 'hints-lost').length).toBeGreaterThan(0)
    await until('it listens again', async () => (await listeners(name)).length === 1)
    await store.versions.edit(() => withLimit(2), AUTHOR)
    await until('the change is in force', () => follower.stats().enforcedVersion === 2)
    expect(follower.stats()).toMatchObject({ polls: 0 })
  })
})

function hasVersion(follower: ConfigFollower, number: number): boolean {
  return follower.stats().enforcedVersion === number
}

async function listeners(database: string): Promise<string[]> {
  const sql = `SELECT pid FROM pg_stat_activity WHERE datname = '${database}' AND query LIKE 'LISTEN%'`
  return (await server.query(sql)).split('\n').filter((line) => line.trim() !== '')
}
