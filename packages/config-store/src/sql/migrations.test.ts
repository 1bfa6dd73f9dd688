import { readFile } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import type { PostgresServer } from '@sluice/testing/servers'
import { startPostgres } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { openConfigStore } from '../open-config-store.ts'
import { newFile, openDriver } from './driver.test.support.ts'
import type { Migration } from './migrations/migration.ts'
import { MIGRATIONS, migrate } from './migrations.ts'
import type { SqlDriver } from './sql-driver.ts'

const NOW_MS = 1_700_000_000_000
const NEWEST = MIGRATIONS.length
const nowMs = (): number => NOW_MS

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
})

afterAll(() => server.close())

interface Dialect {
  readonly dialect: 'sqlite' | 'postgres'
  /** An empty database. */
  readonly empty: () => Promise<string>
  /** A database of form 1, as a program of that time has left it. */
  readonly first: () => Promise<string>
}

async function fixture(dialect: string): Promise<string> {
  return await readFile(new URL(`./migrations/form-1.test.${dialect}.sql`, import.meta.url), 'utf8')
}

const DIALECTS: readonly Dialect[] = [
  {
    dialect: 'sqlite',
    empty: newFile,
    async first() {
      const path = await newFile()
      const database = new DatabaseSync(path)
      database.exec(await fixture('sqlite'))
      database.close()
      return path
    },
  },
  {
    dialect: 'postgres',
    empty: async () => (await server.createDatabase()).url,
    async first() {
      const { name, url } = await server.createDatabase()
      await server.query(await fixture('postgres'), name)
      return url
    },
  },
]

async function appliedIn(driver: SqlDriver): Promise<readonly number[]> {
  const rows = await driver.query<{ number: number }>('SELECT number FROM schema_migrations ORDER BY number')
  return rows.map(({ number }) => number)
}

it('numbers its steps without gaps', () => {
  expect(MIGRATIONS.map(({ number }) => number)).toEqual(MIGRATIONS.map((_, index) => index + 1))
})

describe.each(DIALECTS)('on $dialect', ({ empty, first }) => {
  it('brings a database of the first form to the newest, with everything that is in it', async () => {
    const url = await first()
    let now = NOW_MS
    const store = await openConfigStore(url, { nowMs: () => now })
    onTestFinished(() => store.close())
    const driver = await openDriver(url)
    expect(await appliedIn(driver)).toEqual(MIGRATIONS.map(({ number }) => number))

    const { enforced, candidate } = await store.versions.current()
    expect(enforced).toMatchObject({ number: 2, basedOn: 1, createdBy: 'alice', note: 'first' })
    expect(candidate).toMatchObject({ number: 3, stage: 'percent', percent: 12.5 })
    expect((await store.versions.get(2))?.ruleSet).toEqual({
      rules: [{ resource: '/orders', dimension: 'user', limit: 10, window: '1m' }],
      tiers: [{ name: 'premium', multiplier: 10 }],
      exemptions: [{ name: 'health', match: { resource: '/health' } }],
      regions: { US: 2 },
    })
    const overrides = (await store.overrides.list()).items
    expect(overrides.map(({ entry, revision }) => [entry.entity, revision])).toEqual([
      ['a\0b', 8],
      ['u1', 7],
    ])
    expect((await store.members.list()).items).toMatchObject([{ entry: { entity: 't1', tier: 'premium' } }])
    expect((await store.incident.get()).entry).toEqual({ active: true })
    const token = 'slk_3DBmkKOLiL8D_7ciUdNpYUV8wcEpZqEXXuS5on7NGT5J2DKNfjNhJhUH'
    expect(await store.apiKeys.verify(token)).toMatchObject({ name: 'ci', role: 'editor' })
    expect((await store.audit.list()).items).toHaveLength(11)
    expect(await store.feed.since(9)).toMatchObject({ restart: false, position: 14 })

    // Form 2: blocks know when they are forgotten.
    const [block] = (await store.blocks.list()).items
    expect(block).toMatchObject({ entry: { entity: '10.0.0.1' }, revision: 14 })
    const end = 1_700_086_400_000 + 24 * 60 * 60 * 1000
    const other = { dimension: 'ip', entity: 'b', until: end + 1e6, strikes: 1, forgottenAt: end + 1e6 }
    now = end
    await store.blocks.put(other, { name: 'bob' })
    expect((await store.blocks.list()).items).toHaveLength(2)
    now = end + 2
    await store.blocks.put(other, { name: 'bob' })
    expect((await store.blocks.list()).items).toHaveLength(1)
    // Changes go on where they were.
    expect((await store.audit.list({ limit: 1 })).items[0]!.number).toBe(13)
    expect(await store.versions.rollback({ name: 'bob' })).toMatchObject({ number: 1 })
  })

  it('is done once when several nodes start at the same time', async () => {
    const url = await empty()
    const drivers = await Promise.all(Array.from({ length: 5 }, () => openDriver(url)))
    await Promise.all(drivers.map((driver) => migrate(driver, { nowMs })))
    expect(await appliedIn(drivers[0]!)).toEqual(MIGRATIONS.map(({ number }) => number))
    expect(await migrate(drivers[1]!, { nowMs })).toEqual({ from: NEWEST, to: NEWEST })
  })

  it('refuses a database that a newer program has changed, and leaves it alone', async () => {
    const url = await empty()
    const driver = await openDriver(url)
    const newer: Migration = { number: NEWEST + 1, statements: () => ['CREATE TABLE of_the_future (a TEXT)'] }
    await migrate(driver, { nowMs, migrations: [...MIGRATIONS, newer] })
    const opened = openConfigStore(url)
    await expect(opened).rejects.toMatchObject({ code: 'SLUICE_UNSUPPORTED' })
    await expect(opened).rejects.toThrow(`form ${NEWEST + 1}, made by a newer program; expected at most form ${NEWEST}`)
    await expect(opened).rejects.toThrow('Upgrade this program')
    expect(await appliedIn(driver)).toHaveLength(NEWEST + 1)
  })

  it('does a step whole or not at all', async () => {
    const driver = await openDriver(await empty())
    const failing: Migration = {
      number: NEWEST + 1,
      statements: () => ['CREATE TABLE half (a TEXT)', 'ALTER TABLE no_such_table ADD COLUMN a TEXT'],
    }
    const migrated = migrate(driver, { nowMs, migrations: [...MIGRATIONS, failing] })
    await expect(migrated).rejects.toMatchObject({ code: 'SLUICE_CONFIG_UNAVAILABLE' })
    expect(await appliedIn(driver)).toHaveLength(NEWEST)
    await expect(driver.query('SELECT * FROM half')).rejects.toThrow()
    const better: Migration = { number: NEWEST + 1, statements: () => ['CREATE TABLE half (a TEXT)'] }
    expect(await migrate(driver, { nowMs, migrations: [...MIGRATIONS, better] })).toEqual({
      from: NEWEST,
      to: NEWEST + 1,
    })
    expect(await driver.query('SELECT * FROM half')).toEqual([])
  })
})
