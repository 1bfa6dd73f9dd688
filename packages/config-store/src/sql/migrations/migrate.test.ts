import { readFile } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import type { PostgresServer } from '@sluice/testing/servers'
import { startPostgres } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { openConfigStore } from '../../open-config-store.ts'
import { newFile, openDriver } from '../driver.test.support.ts'
import type { SqlDriver } from '../sql-driver.ts'
import { CanonicalKeys } from '../tables/entry-kinds.ts'
import { MIGRATIONS, migrate } from './migrate.ts'
import type { Migration } from './migration.ts'

const NOW_MS = 1_700_000_000_000
const NEWEST = MIGRATIONS.length
const nowMs = (): number => NOW_MS
const canonicalKeys = new CanonicalKeys(64)

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
  return await readFile(new URL(`./form-1.test.${dialect}.sql`, import.meta.url), 'utf8')
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

  it('makes one row of those that are one entry, of which the newest stays, and has all nodes reload', async () => {
    const url = await empty()
    const driver = await openDriver(url)
    await migrate(driver, { nowMs, canonicalKeys, migrations: MIGRATIONS.slice(0, 3) })
    let position = 1
    const put = async (table: string, body: Record<string, unknown>): Promise<void> => {
      const parts = table === 'overrides' ? ['dimension', 'entity', 'resource'] : ['dimension', 'entity']
      const ends = table === 'blocks' ? ['forgotten_at'] : []
      const names = [...parts, 'body', 'position', 'changed_at', 'changed_by', ...ends]
      const values = [...parts.map((name) => body[name] as string), JSON.stringify(body), ++position, NOW_MS, 'ada']
      await driver.query(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`, [
        ...values,
        ...ends.map(() => 9),
      ])
    }
    const override = (entity: string, resource: string, limit: number) => ({
      ...{ dimension: 'user', entity, resource, terms: { limit } },
    })
    await put('overrides', override('u1', '/orders/:any', 1))
    await put('overrides', override('u1', '/Orders/:id', 2))
    await put('overrides', override('u1', '/orders/:order/', 3))
    await put('overrides', override('u2', '/ORDERS', 4))
    await put('overrides', override('u2', '/orders', 5))
    await put('overrides', override('u3', '/Alone', 6))
    await put('overrides', override('u4', '/orders', 7))
    // More than go into one step, and all of them in need of it.
    for (let index = 0; index < 1100; index++) await put('overrides', override(`x${index}`, '/Many/:id', index))
    for (let index = 0; index < 1100; index += 100) await put('overrides', override(`x${index}`, '/many/:any', -1))
    const block = { until: 9, strikes: 1, forgottenAt: 9 }
    await put('blocks', { dimension: 'ip', entity: '::ffff:1.2.3.4', ...block })
    await put('blocks', { dimension: 'ip', entity: '1.2.3.4', ...block, strikes: 2 })
    await put('blocks', { dimension: 'ip', entity: '2001:db8::2', ...block, strikes: 3 })
    await put('blocks', { dimension: 'ip', entity: '2001:db8::1', ...block, strikes: 4 })
    await driver.query('UPDATE feed_head SET position = ?', [position])

    const store = await openConfigStore(url, { nowMs })
    onTestFinished(() => store.close())
    const limits = async (filter: object): Promise<readonly unknown[]> =>
      (await store.overrides.list({ ...filter, limit: 1000 })).items.map(({ entry, revision }) => [
        entry.resource,
        entry.terms.limit,
        revision,
      ])
    expect(await limits({ entity: 'u1' })).toEqual([['/orders/:order/', 3, 4]])
    expect(await limits({ entity: 'u2' })).toEqual([['/orders', 5, 6]])
    expect(await limits({ entity: 'u3' })).toEqual([['/Alone', 6, 7]])
    expect(await limits({ entity: 'u4' })).toEqual([['/orders', 7, 8]])
    expect(await limits({ entity: 'x100' })).toEqual([['/many/:any', -1, 1110]])
    expect(await limits({ entity: 'x101' })).toEqual([['/Many/:id', 101, 110]])
    const blocks = (await store.blocks.list()).items
    expect(blocks.map(({ entry }) => [entry.entity, entry.strikes])).toEqual([
      ['1.2.3.4', 2],
      ['2001:db8::1', 4],
    ])
    // Found, and removed, by any spelling.
    expect(await store.overrides.remove(override('u3', '/alone', 0), { name: 'bob' })).toBe(true)
    expect(await store.overrides.remove(override('x7', '/many/:x', 0), { name: 'bob' })).toBe(true)
    expect(await store.feed.since(position)).toMatchObject({ restart: true })
    const records = (await store.audit.list({ by: 'sluice', limit: 100 })).items
    expect(records).toHaveLength(2 + 1 + 11 + 2)
    expect(records.filter(({ target }) => target.startsWith('user:u2'))).toMatchObject([
      { action: 'override.merge', before: override('u2', '/ORDERS', 4), after: override('u2', '/orders', 5) },
    ])
  })

  it('has nodes reload for what was removed in another spelling, and leaves others in peace', async () => {
    const url = await empty()
    const driver = await openDriver(url)
    await migrate(driver, { nowMs, canonicalKeys, migrations: MIGRATIONS.slice(0, 3) })
    const body = JSON.stringify({ dimension: 'user', entity: 'u1', resource: '/Orders' })
    await driver.query('INSERT INTO removals (kind, key, body, position, removed_at) VALUES (?, ?, ?, ?, ?)', [
      'override',
      body,
      body,
      5,
      NOW_MS,
    ])
    await driver.query('UPDATE feed_head SET position = 5')
    const store = await openConfigStore(url, { nowMs })
    onTestFinished(() => store.close())
    expect(await store.feed.since(5)).toMatchObject({ restart: true, position: 6 })
    expect(await store.feed.since(6)).toMatchObject({ restart: false, position: 6 })
    expect((await store.audit.list()).items).toEqual([])
  })

  it('is done once when several nodes start at the same time', async () => {
    const url = await empty()
    const drivers = await Promise.all(Array.from({ length: 5 }, () => openDriver(url)))
    await Promise.all(drivers.map((driver) => migrate(driver, { nowMs, canonicalKeys })))
    expect(await appliedIn(drivers[0]!)).toEqual(MIGRATIONS.map(({ number }) => number))
    expect(await migrate(drivers[1]!, { nowMs, canonicalKeys })).toEqual({ from: NEWEST, to: NEWEST })
  })

  it('rejects a database that a newer program has changed, and leaves it alone', async () => {
    const url = await empty()
    const driver = await openDriver(url)
    const newer: Migration = { number: NEWEST + 1, statements: () => ['CREATE TABLE of_the_future (a TEXT)'] }
    await migrate(driver, { nowMs, canonicalKeys, migrations: [...MIGRATIONS, newer] })
    const opened = openConfigStore(url)
    await expect(opened).rejects.toMatchObject({ code: 'SLUICE_UNSUPPORTED' })
    await expect(opened).rejects.toThrow(
      `schema version ${NEWEST + 1}, made by a newer program; expected at most schema version ${NEWEST}`,
    )
    await expect(opened).rejects.toThrow('Upgrade this program')
    expect(await appliedIn(driver)).toHaveLength(NEWEST + 1)
  })

  it('does a step whole or not at all', async () => {
    const driver = await openDriver(await empty())
    const failing: Migration = {
      number: NEWEST + 1,
      statements: () => ['CREATE TABLE half (a TEXT)', 'ALTER TABLE no_such_table ADD COLUMN a TEXT'],
    }
    const migrated = migrate(driver, { nowMs, canonicalKeys, migrations: [...MIGRATIONS, failing] })
    await expect(migrated).rejects.toMatchObject({ code: 'SLUICE_CONFIG_UNAVAILABLE' })
    expect(await appliedIn(driver)).toHaveLength(NEWEST)
    await expect(driver.query('SELECT * FROM half')).rejects.toThrow()
    const better: Migration = { number: NEWEST + 1, statements: () => ['CREATE TABLE half (a TEXT)'] }
    expect(await migrate(driver, { nowMs, canonicalKeys, migrations: [...MIGRATIONS, better] })).toEqual({
      from: NEWEST,
      to: NEWEST + 1,
    })
    expect(await driver.query('SELECT * FROM half')).toEqual([])
  })
})
