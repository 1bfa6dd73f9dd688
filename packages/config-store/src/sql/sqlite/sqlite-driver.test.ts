import { spawn } from 'node:child_process'
import { readdir, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ConfigStore } from '../../config-store.ts'
import { openConfigStore } from '../../open-config-store.ts'
import { until } from '../../waiting.test.support.ts'
import { newFile, openDriver } from '../driver.test.support.ts'

async function open(url: string): Promise<ConfigStore> {
  const store = await openConfigStore(url)
  onTestFinished(() => store.close())
  return store
}

/** Another connection, as another program would have it. */
function lockedBy(path: string): DatabaseSync {
  const other = new DatabaseSync(path)
  onTestFinished(() => other.close())
  other.exec('BEGIN IMMEDIATE')
  return other
}

async function writeInProcess(path: string, name: string): Promise<unknown> {
  const child = new URL('./write-child.test.support.ts', import.meta.url).pathname
  const args = ['--conditions=source', '--disable-warning=ExperimentalWarning', child, path, name, '40']
  const started = spawn(process.execPath, args, { stdio: 'inherit' })
  return await new Promise((resolve) => started.once('exit', resolve))
}

async function writeInThread(path: string, name: string): Promise<unknown> {
  const worker = new Worker(new URL('./write-child.test.support.ts', import.meta.url), {
    execArgv: ['--conditions=source'],
    workerData: [path, name, '40'],
  })
  return await new Promise((resolve, reject) => {
    worker.once('error', reject)
    worker.once('exit', resolve)
  })
}

describe('a SQLite file', () => {
  it('is made and written by several processes and threads at the same time, and nothing is lost', async () => {
    const path = await newFile()
    const ended = await Promise.all([
      writeInProcess(path, 'p1'),
      writeInProcess(path, 'p2'),
      writeInThread(path, 't1'),
      writeInThread(path, 't2'),
    ])
    expect(ended).toEqual([0, 0, 0, 0])
    const store = await open(path)
    const { items } = await store.overrides.list({ limit: 1000 })
    expect(items).toHaveLength(160)
    expect(new Set(items.map(({ revision }) => revision)).size).toBe(160)
    expect(await store.feed.head()).toBe(161)
  })

  it('is kept in a journal that lets others read, and survives the process', async () => {
    const path = await newFile()
    const store = await open(path)
    await store.incident.set({ active: true }, { name: 'alice' })
    const other = new DatabaseSync(path)
    expect(other.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' })
    other.close()
    await store.close()
    const again = await open(`sqlite:${path}`)
    expect((await again.incident.get()).entry).toEqual({ active: true })
  })

  it('is made for this user alone, with what is kept beside it', async () => {
    const umask = process.umask(0)
    onTestFinished(() => void process.umask(umask))
    const path = await newFile()
    const store = await open(`sqlite:${path}`)
    await store.apiKeys.create({ name: 'k', role: 'admin' }, { name: 'ada' })
    const names = (await readdir(dirname(path))).filter((name) => name.startsWith(basename(path)))
    expect(names.length).toBeGreaterThan(1)
    for (const name of names)
      expect([name, (await stat(join(dirname(path), name))).mode & 0o777]).toEqual([name, 0o600])
  })

  it('that cannot grow differs from one that cannot be used, and can still be read', async () => {
    const driver = await openDriver(await newFile())
    await driver.query('CREATE TABLE t (a TEXT)')
    const failure = await driver
      .transaction(async (transaction) => {
        // What SQLite says when the disk is full, too.
        await transaction.query('PRAGMA max_page_count = 8')
        await transaction.query('INSERT INTO t VALUES (?)', ['x'.repeat(1_000_000)])
      })
      .catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'SLUICE_CONFIG_NOT_WRITABLE', cause: { errcode: 13 } })
    expect(String(failure)).toContain('its disk is full')
    expect(await driver.query('SELECT * FROM t')).toEqual([])
  })

  it('that is read-only says so', async () => {
    const driver = await openDriver(await newFile())
    await driver.query('CREATE TABLE t (a TEXT)')
    await driver.transaction((transaction) => transaction.query('PRAGMA query_only = 1'))
    const failure = await driver
      .transaction((transaction) => transaction.query("INSERT INTO t VALUES ('x')"))
      .catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'SLUICE_CONFIG_NOT_WRITABLE', cause: { errcode: 8 } })
    expect(String(failure)).toContain('it is read-only')
  })

  it('waits for another program that writes, without holding up this one', async () => {
    const path = await newFile()
    const driver = await openDriver(path)
    await driver.query('CREATE TABLE t (a INTEGER)')
    const other = lockedBy(path)
    let isDone = false
    const written = driver
      .transaction((transaction) => transaction.query('INSERT INTO t VALUES (1)'))
      .finally(() => {
        isDone = true
      })
    // Others in this process have many turns meanwhile, and may read.
    for (let turn = 0; turn < 50; turn++) expect(await driver.query('SELECT * FROM t')).toEqual([])
    expect(isDone).toBe(false)
    other.exec('COMMIT')
    await written
    expect(await driver.query('SELECT a FROM t')).toMatchObject([{ a: 1 }])
  })

  it('is unavailable when another program writes for longer than the deadline, and fine afterwards', async () => {
    const path = await newFile()
    const driver = await openDriver(path, { deadlineMs: 30 })
    await driver.query('CREATE TABLE t (a INTEGER)')
    const other = lockedBy(path)
    const insert = (): Promise<unknown> =>
      driver.transaction((transaction) => transaction.query('INSERT INTO t VALUES (1)'))
    await expect(insert()).rejects.toMatchObject({
      code: 'SLUICE_CONFIG_UNAVAILABLE',
      message: expect.stringContaining('database is locked'),
      cause: expect.objectContaining({ code: 'ERR_SQLITE_ERROR' }),
    })
    expect(await driver.query('SELECT * FROM t')).toEqual([])
    other.exec('ROLLBACK')
    await insert()
    expect(await driver.query('SELECT a FROM t')).toHaveLength(1)
  })

  it('says what to do when it cannot be opened', async () => {
    const missing = openConfigStore('/no/such/folder/sluice.db')
    await expect(missing).rejects.toMatchObject({ code: 'SLUICE_CONFIG_UNAVAILABLE' })
    await expect(missing).rejects.toThrow('The folder must exist')
    const path = await newFile()
    await writeFile(path, 'rules: []\n'.repeat(200))
    await expect(openConfigStore(path)).rejects.toThrow('Use another path')
  })

  it('notices each time that another connection has changed something, until told to stop', async () => {
    const path = await newFile()
    const driver = await openDriver(path, { pollMs: 5 })
    await driver.query('CREATE TABLE t (a INTEGER)')
    let hints = 0
    const stop = await driver.listen(
      () => {
        hints++
      },
      () => undefined,
    )
    const other = new DatabaseSync(path)
    onTestFinished(() => other.close())
    other.exec('INSERT INTO t VALUES (1)')
    await until('the change is noticed', () => hints >= 1)
    other.exec('INSERT INTO t VALUES (2)')
    await until('the next change is noticed', () => hints >= 2)
    await stop()
    expect(hints).toBe(2)
  })
})

describe('a transaction', () => {
  it('takes turns with others, and none sees half of another', async () => {
    for (const path of [await newFile(), ':memory:']) {
      const driver = await openDriver(path)
      await driver.query('CREATE TABLE t (a INTEGER)')
      const seen: number[] = []
      const add = (value: number): Promise<void> =>
        driver.transaction(async (transaction) => {
          seen.push((await transaction.query('SELECT * FROM t')).length)
          await transaction.query('INSERT INTO t VALUES (?)', [value])
          await transaction.query('INSERT INTO t VALUES (?)', [value])
        })
      const counts = await Promise.all([
        add(1),
        driver.query('SELECT * FROM t').then((rows) => rows.length % 2),
        add(2),
        driver.query('SELECT * FROM t').then((rows) => rows.length % 2),
        add(3),
      ])
      expect(seen).toEqual([0, 2, 4])
      expect(counts).toEqual([undefined, 0, undefined, 0, undefined])
    }
  })

  it('is undone by what it throws, which is passed on', async () => {
    const driver = await openDriver(await newFile())
    await driver.query('CREATE TABLE t (a INTEGER PRIMARY KEY)')
    const failing = driver.transaction(async (transaction) => {
      await transaction.query('INSERT INTO t VALUES (1)')
      throw new RangeError('no')
    })
    await expect(failing).rejects.toThrow(new RangeError('no'))
    expect(await driver.query('SELECT * FROM t')).toEqual([])
    const twice = driver.transaction(async (transaction) => {
      await transaction.query('INSERT INTO t VALUES (1)')
      await transaction.query('INSERT INTO t VALUES (1)')
    })
    await expect(twice).rejects.toMatchObject({ code: 'SLUICE_CONFLICT' })
    expect(await driver.query('SELECT * FROM t')).toEqual([])
  })
})
