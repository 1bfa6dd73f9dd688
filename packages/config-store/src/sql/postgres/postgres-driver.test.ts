import { isSluiceError } from '@sluice/core'
import type { PostgresServer } from '@sluice/testing/servers'
import { FaultyProxy, freePort, startPostgres } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { ConfigStore } from '../../config-store.ts'
import type { ConfigStoreOptions } from '../../open-config-store.ts'
import { openConfigStore } from '../../open-config-store.ts'
import { until } from '../../waiting.test.support.ts'
import { openDriver } from '../driver.test.support.ts'
import type { SqlDriver } from '../sql-driver.ts'

const ALICE = { name: 'alice' }
const PASSWORD = 'p@ss:w0rd/of alice'

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres({ password: PASSWORD, config: { deadlock_timeout: '50ms' } })
})

afterAll(() => server.close())

async function open(url: string, options: ConfigStoreOptions = {}): Promise<ConfigStore> {
  const store = await openConfigStore(url, options)
  onTestFinished(() => store.close())
  return store
}

/** A database with a table of two rows, and a driver for it. */
async function openTable(): Promise<SqlDriver> {
  const driver = await openDriver((await server.createDatabase()).url)
  await driver.query('CREATE TABLE t (id BIGINT PRIMARY KEY, a BIGINT)')
  await driver.query('INSERT INTO t VALUES (1, 0), (2, 0)')
  return driver
}

function put(store: ConfigStore, limit: number): Promise<unknown> {
  return store.overrides.put({ dimension: 'user', entity: 'u1', resource: '*', terms: { limit } }, ALICE)
}

function codeOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'no error',
    (error: { code: string }) => error.code,
  )
}

/** Everything an error says, in its causes too. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return JSON.stringify(error) ?? ''
  const own = Object.getOwnPropertyNames(error).map((name) =>
    String((error as unknown as Record<string, unknown>)[name]),
  )
  return [...own, error.cause === undefined ? '' : textOf(error.cause)].join('\n')
}

function openSockets(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length
}

const KILL_ALL = 'SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database()'
const KILL_OTHERS = `${KILL_ALL} AND pid <> pg_backend_pid()`

describe('a database that does not write', () => {
  it('because its disk is full says so, and can still be read', async () => {
    const driver = await openTable()
    await driver.query(`CREATE FUNCTION reject() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      RAISE EXCEPTION 'could not extend file "base/5/16384": No space left on device' USING ERRCODE = 'disk_full';
    END $$`)
    await driver.query('CREATE TRIGGER reject BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION reject()')
    const failure = await driver.query('INSERT INTO t VALUES (3, 0)').catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'SLUICE_CONFIG_NOT_WRITABLE', cause: { code: '53100' } })
    expect(String(failure)).toContain('its disk is full')
    expect(await driver.query('SELECT id FROM t')).toHaveLength(2)
  })

  it('because it is read-only, as after a failover, says so', async () => {
    const driver = await openTable()
    const failure = await driver
      .transaction(async (transaction) => {
        await transaction.query('SET TRANSACTION READ ONLY')
        await transaction.query('INSERT INTO t VALUES (3, 0)')
      })
      .catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'SLUICE_CONFIG_NOT_WRITABLE', cause: { code: '25006' } })
    expect(String(failure)).toContain('it is read-only')
  })
})

describe('a PostgreSQL server that fails', () => {
  it('kills idle connections: an error at most, then recovery without a restart', async () => {
    const { name, url } = await server.createDatabase()
    const store = await open(url, { connections: 1 })
    await put(store, 1)
    await server.query(KILL_OTHERS, name)
    // The pool notices on its own, or the next call does: afterwards everything goes on.
    const codes = new Set<unknown>()
    await until('calls succeed again', async () => {
      const code = await codeOf(put(store, 2))
      codes.add(code)
      return code === 'no error'
    })
    codes.delete('SLUICE_CONFIG_UNAVAILABLE')
    expect([...codes]).toEqual(['no error'])
    expect((await store.overrides.list()).items).toMatchObject([{ entry: { terms: { limit: 2 } } }])
  })

  it('kills the connection of a transaction: it is rejected, nothing is stored, the next one succeeds', async () => {
    const driver = await openTable()
    const killed = driver.transaction(async (transaction) => {
      await transaction.query('UPDATE t SET a = 1')
      await transaction.query(KILL_ALL)
    })
    await expect(killed).rejects.toMatchObject({
      code: 'SLUICE_CONFIG_UNAVAILABLE',
      cause: expect.objectContaining({ code: '57P01' }),
    })
    expect(await driver.query('SELECT a FROM t')).toEqual([{ a: 0 }, { a: 0 }])
  })

  it('breaks a connection between two statements: no uncaught error, and the next one succeeds', async () => {
    const { name, url } = await server.createDatabase()
    const driver = await openDriver(url)
    const broken = driver.transaction(async (transaction) => {
      const [row] = await transaction.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
      await server.query(`SELECT pg_terminate_backend(${row!.pid})`, name)
      const gone = async (): Promise<boolean> =>
        (await server.query(`SELECT count(*) FROM pg_stat_activity WHERE pid = ${row!.pid}`)) === '0'
      await until('the connection is gone', gone)
      await transaction.query('SELECT 1')
    })
    expect(await codeOf(broken)).toBe('SLUICE_CONFIG_UNAVAILABLE')
    expect(await driver.query('SELECT 1 AS a')).toEqual([{ a: 1 }])
  })

  it('is stopped and started again: unavailable meanwhile, and then as before', async () => {
    const own = await startPostgres()
    onTestFinished(() => own.close())
    const store = await open(own.url)
    await put(store, 1)
    await own.stop()
    const rejected = put(store, 2)
    await expect(rejected).rejects.toMatchObject({ code: 'SLUICE_CONFIG_UNAVAILABLE' })
    expect(await codeOf(openConfigStore(own.url))).toBe('SLUICE_CONFIG_UNAVAILABLE')
    await own.restart()
    await put(store, 3)
    expect((await store.overrides.list()).items).toMatchObject([{ entry: { terms: { limit: 3 } } }])
  })

  it('hangs: each call is rejected at its deadline, and it recovers', async () => {
    const own = await startPostgres()
    onTestFinished(() => own.close())
    const store = await open(own.url, { deadlineMs: 200, connections: 2 })
    await put(store, 1)
    await own.pause()
    const codes = await Promise.all([codeOf(put(store, 2)), codeOf(store.feed.head()), codeOf(put(store, 3))])
    expect(codes).toEqual(codes.map(() => 'SLUICE_CONFIG_UNAVAILABLE'))
    own.resume()
    await until('calls succeed again', async () => (await codeOf(put(store, 4))) === 'no error')
    expect((await store.overrides.list()).items).toMatchObject([{ entry: { terms: { limit: 4 } } }])
  })

  it('hangs: closing ends all connections nevertheless', async () => {
    const own = await startPostgres()
    onTestFinished(() => own.close())
    const before = openSockets()
    const store = await open(own.url)
    await Promise.all([put(store, 1), store.feed.head(), store.feed.head()])
    await store.feed.watch(
      () => undefined,
      () => undefined,
    )
    expect(openSockets()).toBeGreaterThan(before + 1)
    await own.pause()
    await store.close()
    expect(openSockets()).toBe(before)
  })

  it('does not answer a commit: the error says that the change may be there', async () => {
    const { name, url } = await server.createDatabase()
    const proxy = await FaultyProxy.start({ port: server.port })
    onTestFinished(() => proxy.close())
    const driver = await openDriver(url.replace(`:${server.port}/`, `:${proxy.port}/`), { deadlineMs: 300 })
    await driver.query('CREATE TABLE t (a BIGINT)')
    const lost = driver.transaction(async (transaction) => {
      await transaction.query('INSERT INTO t VALUES (1)')
      await proxy.dropReplies()
    })
    await expect(lost).rejects.toThrow('The reply to COMMIT was lost: check whether the change was made')
    expect(await codeOf(lost)).toBe('SLUICE_CONFIG_UNAVAILABLE')
    await proxy.passThrough()
    expect(await server.query('SELECT a FROM t', name)).toBe('1')
    expect(await driver.query('SELECT a FROM t')).toEqual([{ a: 1 }])
  })

  it('lets a statement run for no longer than the deadline', async () => {
    const driver = await openDriver((await server.createDatabase()).url, { deadlineMs: 100 })
    const slow = driver.query('SELECT pg_sleep(30)')
    await expect(slow).rejects.toThrow('statement timeout')
    await expect(slow).rejects.toThrow('It took longer than the deadline')
    const allowed = driver.transaction((transaction) => transaction.query('SELECT pg_sleep(0.2)'), {
      deadlineMs: 20_000,
    })
    expect(await codeOf(allowed)).toBe('no error')
    // Only for that transaction.
    expect(await codeOf(driver.query('SELECT pg_sleep(30)'))).toBe('SLUICE_CONFIG_UNAVAILABLE')
  })
})

describe('a transaction', () => {
  it('is run again when the server has given it up for another', async () => {
    const driver = await openTable()
    let attempts = 0
    let arrived = 0
    let release: () => void = () => undefined
    const bothArrived = new Promise<void>((resolve) => {
      release = resolve
    })
    const cross = (first: number, second: number): Promise<void> =>
      driver.transaction(async (transaction) => {
        attempts++
        await transaction.query('UPDATE t SET a = a + 1 WHERE id = ?', [first])
        if (++arrived === 2) release()
        await bothArrived
        await transaction.query('UPDATE t SET a = a + 1 WHERE id = ?', [second])
      })
    await Promise.all([cross(1, 2), cross(2, 1)])
    expect(attempts).toBe(3)
    expect(await driver.query('SELECT a FROM t')).toEqual([{ a: 2 }, { a: 2 }])
  })

  it('is given up after a few attempts, each from the beginning', async () => {
    const driver = await openTable()
    let attempts = 0
    const failing = driver.transaction(async (transaction) => {
      attempts++
      await transaction.query('UPDATE t SET a = a + 1')
      await transaction.query("DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$")
    })
    expect(await codeOf(failing)).toBe('SLUICE_CONFIG_UNAVAILABLE')
    expect(attempts).toBe(5)
    expect(await driver.query('SELECT a FROM t')).toEqual([{ a: 0 }, { a: 0 }])
  })

  it('is undone by what it throws, which is passed on', async () => {
    const driver = await openTable()
    const failing = driver.transaction(async (transaction) => {
      await transaction.query('UPDATE t SET a = 1')
      throw new RangeError('no')
    })
    await expect(failing).rejects.toThrow(new RangeError('no'))
    const twice = driver.transaction(async (transaction) => {
      await transaction.query('UPDATE t SET a = 1')
      await transaction.query('INSERT INTO t VALUES (1, 1)')
    })
    await expect(twice).rejects.toMatchObject({ code: 'SLUICE_CONFLICT' })
    expect(await driver.query('SELECT a FROM t')).toEqual([{ a: 0 }, { a: 0 }])
  })

  it('puts rows with any mixture of equal, different and missing values', async () => {
    const driver = await openDriver((await server.createDatabase()).url)
    await driver.query('CREATE TABLE t (id BIGINT PRIMARY KEY, a TEXT, b TEXT)')
    const columns = [
      { name: 'id', type: 'bigint' as const },
      { name: 'a', type: 'text' as const },
      { name: 'b', type: 'text' as const },
    ]
    const target = { table: 't', columns, key: ['id'] }
    const rows = [
      [1, '{"a":"\\\\,{}\'"}', null],
      [2, 'same', null],
      [3, null, null],
    ]
    await driver.transaction(async (transaction) => {
      await transaction.putRows(target, [])
      await transaction.putRows(target, rows)
      await transaction.putRows(target, [[2, 'other', 'b']])
    })
    expect(await driver.query('SELECT id, a, b FROM t ORDER BY id')).toEqual([
      { id: 1, a: rows[0]![1], b: null },
      { id: 2, a: 'other', b: 'b' },
      { id: 3, a: null, b: null },
    ])
  })
})

describe('who listens', () => {
  it('is notified when the connection was lost, and again when it may have missed something', async () => {
    const { name, url } = await server.createDatabase()
    const driver = await openDriver(url)
    const told: unknown[] = []
    const stop = await driver.listen(
      () => told.push('changed'),
      (error) => told.push((error as { code: string }).code),
    )
    onTestFinished(stop)
    const notify = (): Promise<void> => driver.transaction((transaction) => transaction.notify())
    await notify()
    await until('the change arrives', () => told.length === 1)
    await server.query(KILL_OTHERS, name)
    await until('it listens again', () => told.length === 3)
    expect(told).toEqual(['changed', 'SLUICE_CONFIG_UNAVAILABLE', 'changed'])
    await until('it can be notified again', async () => (await codeOf(notify())) === 'no error')
    await until('the next change arrives', () => told.length === 4)
  })

  it('finds out by itself that the server has gone silent', async () => {
    const proxy = await FaultyProxy.start({ port: server.port })
    onTestFinished(() => proxy.close())
    const { url } = await server.createDatabase()
    const through = url.replace(`:${server.port}/`, `:${proxy.port}/`)
    const driver = await openDriver(through, { keepaliveMs: 50, deadlineMs: 300 })
    const told: string[] = []
    const stop = await driver.listen(
      () => told.push('changed'),
      () => told.push('lost'),
    )
    onTestFinished(stop)
    await proxy.blackHole()
    await until('it is missed', () => told.includes('lost'))
    await proxy.passThrough()
    await until('it listens again', () => told.at(-1) === 'changed')
    expect(told).toEqual(['lost', 'changed'])
  })

  it('is rejected when the server is unreachable, and several share one connection', async () => {
    const { name, url } = await server.createDatabase()
    const away = await openDriver(url.replace(`:${server.port}/`, `:${await freePort()}/`))
    const ignore = (): void => undefined
    expect(await codeOf(away.listen(ignore, ignore))).toBe('SLUICE_CONFIG_UNAVAILABLE')

    const driver = await openDriver(url)
    const stops = await Promise.all([driver.listen(ignore, ignore), driver.listen(ignore, ignore)])
    const listening = (): Promise<string> =>
      server.query(`SELECT count(*) FROM pg_stat_activity WHERE datname = '${name}' AND query LIKE 'LISTEN%'`)
    expect(await listening()).toBe('1')
    for (const stop of stops) await stop()
    await until('the connection is closed', async () => (await listening()) === '0')
  })
})

describe('the password', () => {
  it('is in no message, whatever goes wrong', async () => {
    const { url } = await server.createDatabase()
    const encoded = encodeURIComponent(PASSWORD)
    expect(url).toContain(encoded)
    const wrong = encodeURIComponent(`${PASSWORD}!`)
    const failures = await Promise.all(
      [
        url.replace(encoded, wrong),
        url.replace(`:${server.port}/`, `:${await freePort()}/`),
        url.replace(/\/test_\d+$/, '/no_such_database'),
        url.replace('127.0.0.1', 'host.invalid'),
        url.replace(`:${server.port}/`, ':99999999/'),
        url.replace('postgres:', 'mysql:'),
      ].map((address) => openConfigStore(address).catch((error: unknown) => error)),
    )
    expect(failures.map((error) => (isSluiceError(error) ? error.code : error))).toEqual([
      'SLUICE_CONFIG_UNAVAILABLE',
      'SLUICE_CONFIG_UNAVAILABLE',
      'SLUICE_CONFIG_UNAVAILABLE',
      'SLUICE_CONFIG_UNAVAILABLE',
      'SLUICE_INVALID_OPTION',
      'SLUICE_INVALID_OPTION',
    ])
    for (const failure of failures) {
      for (const secret of [PASSWORD, encoded, wrong, 'w0rd']) expect(textOf(failure)).not.toContain(secret)
    }
    expect(textOf(failures[0])).toContain('password authentication failed')
    expect(textOf(failures[1])).toContain('ECONNREFUSED')
  })
})
