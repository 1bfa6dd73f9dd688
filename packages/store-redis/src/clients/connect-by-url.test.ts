import { readdir, readFile } from 'node:fs/promises'
import { systemTimers } from '@sluice/core'
import { expectSameStores, ReferenceStore } from '@sluice/testing'
import { FaultyProxy, freePort, startRedis } from '@sluice/testing/servers'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RedisConnection } from '../connection/connection.ts'
import { NEEDED_COMMANDS, ScriptRunner } from '../wire/script-runner.ts'
import { pause, storeOver, until, untilAnswered } from './client-trial.test.support.ts'
import type { ConnectOptions } from './connect-by-url.ts'
import { connectByUrl } from './connect-by-url.ts'

function open(target: string | readonly string[], options: ConnectOptions = {}): RedisConnection {
  const connection = connectByUrl(target, options)
  onTestFinished(() => connection.close())
  return connection
}

function commandOf(connection: RedisConnection): (...command: string[]) => Promise<unknown> {
  const runner = new ScriptRunner(connection, pause)
  return (...command) => runner.command(command, command[1] ?? '')
}

const noPackage = (): Promise<never> => Promise.reject(new Error("Cannot find package 'redis'"))

describe('a connection by URL', () => {
  it('is not there at first, says why not, and comes when the server does', async () => {
    const port = await freePort()
    const connection = open(`redis://:secret@127.0.0.1:${port}`)
    expect(connection.isReady()).toBe(false)
    await until('it has tried', () => connection.obstacle?.() !== undefined)
    const refused = commandOf(connection)('GET', 'x')
    await expect(refused).rejects.toMatchObject({
      code: 'SLUICE_STORE_UNAVAILABLE',
      message: expect.stringContaining(`ECONNREFUSED 127.0.0.1:${port}`),
    })
    await expect(refused).rejects.not.toMatchObject({ message: expect.stringContaining('secret') })
    const server = await startRedis({ port, password: 'secret' })
    onTestFinished(() => server.close())
    await untilAnswered(connection, 'x')
    expect(connection.obstacle?.()).toBeUndefined()
  })

  it('says that the password is wrong', async () => {
    const server = await startRedis({ password: 'right' })
    onTestFinished(() => server.close())
    const connection = open(`redis://:wrong@127.0.0.1:${server.port}`)
    await until('it has tried', () => connection.obstacle?.() !== undefined)
    await expect(commandOf(connection)('GET', 'x')).rejects.toMatchObject({
      code: 'SLUICE_STORE_UNAVAILABLE',
      message: expect.stringMatching(/WRONGPASS(?!.*wrong@)/),
    })
  })

  it('uses the database of the URL', async () => {
    const server = await startRedis()
    onTestFinished(() => server.close())
    const connection = open(`${server.url}/5`)
    await until('it is ready', () => connection.isReady())
    await connection.send(['SET', 'here', '1'], 'here')
    expect(await server.command('EXISTS', 'here')).toBe(0)
    expect(await server.command('INFO', 'keyspace')).toContain('db5:keys=1')
  })

  it('comes back after a server that hung, also while it greets', async () => {
    const server = await startRedis()
    const proxy = await FaultyProxy.start({ port: server.port })
    onTestFinished(async () => {
      await proxy.close()
      await server.close()
    })
    await proxy.blackHole()
    const connection = open(`redis://127.0.0.1:${proxy.port}`)
    await until('it has given up a try', () => connection.obstacle?.() !== undefined)
    expect(connection.obstacle?.()?.message).toContain('not connected within 2000 ms')
    await proxy.passThrough()
    await untilAnswered(connection, 'x')
  })

  it('is replaced when it has owed answers for too long, and only then', async () => {
    const server = await startRedis()
    const proxy = await FaultyProxy.start({ port: server.port })
    onTestFinished(async () => {
      await proxy.close()
      await server.close()
    })
    let nowMs = 0
    const connection = open(`redis://127.0.0.1:${proxy.port}`, { monotonicMs: () => nowMs })
    await until('it is ready', () => connection.isReady())
    nowMs = 1_000_000
    await connection.send(['PING'], '')
    expect(proxy.totals.connections).toBe(1)
    await server.pause()
    const first = connection.send(['INCR', 'n'], 'n').catch((error: Error) => error.message)
    nowMs += 3000
    const second = connection.send(['INCR', 'n'], 'n').catch((error: Error) => error.message)
    expect(connection.isReady()).toBe(true)
    nowMs += 1
    const third = connection.send(['INCR', 'n'], 'n').catch((error: Error) => error.message)
    expect(connection.isReady()).toBe(false)
    expect(await Promise.all([first, second, third])).toEqual([
      'the connection was given up',
      'the connection was given up',
      expect.stringContaining('did not send'),
    ])
    server.resume()
    await untilAnswered(connection, 'x')
    expect(proxy.totals.connections).toBe(2)
  })

  it.each(['before it was loaded', 'before it was connected', 'when it was connected'])(
    'can be closed %s',
    async (when) => {
      const server = await startRedis()
      onTestFinished(() => server.close())
      const isAway = when.includes('before')
      const connection = connectByUrl(isAway ? `redis://127.0.0.1:${await freePort()}` : server.url)
      if (when.endsWith('connected') && isAway) await until('it has tried', () => connection.obstacle?.() !== undefined)
      if (!isAway) await untilAnswered(connection, 'x')
      await connection.close()
      await connection.close()
      expect(connection.isReady()).toBe(false)
    },
  )

  it('of one server needs no package', async () => {
    const server = await startRedis()
    onTestFinished(() => server.close())
    await untilAnswered(open(server.url, { load: noPackage }), 'x')
  })

  it.each([{ cluster: true }, { sentinel: { name: 'primary' } }])('of %o says what to install', async (reach) => {
    const connection = open('redis://127.0.0.1', { ...reach, load: noPackage })
    await until('it has tried', () => connection.obstacle?.() !== undefined)
    await expect(commandOf(connection)('GET', 'x')).rejects.toMatchObject({
      code: 'SLUICE_INVALID_OPTION',
      message: expect.stringContaining('npm install redis'),
    })
  })
})

describe('a connection by rediss:// URL', () => {
  it('trusts the authority that is given, and no other', async () => {
    const server = await startRedis({ tls: true, password: 'secret' })
    onTestFinished(() => server.close())
    const trusting = open(server.url, { tls: { ca: server.ca! } })
    await untilAnswered(trusting, 'x')
    const wary = open(server.url)
    await until('it has tried', () => wary.obstacle?.() !== undefined)
    await expect(commandOf(wary)('GET', 'x')).rejects.toMatchObject({
      code: 'SLUICE_STORE_UNAVAILABLE',
      message: expect.stringContaining('self-signed certificate'),
    })
  })
})

describe('the rule for the user in the documentation', () => {
  it('is enough for everything the store does', async () => {
    const server = await startRedis({ aclUser: { name: 'admin', password: 'all' } })
    onTestFinished(() => server.close())
    await server.command('ACL', 'SETUSER', 'sluice', 'on', '>secret', ...(await documentedRule()))
    const connection = open(`redis://sluice:secret@127.0.0.1:${server.port}`)
    await until('it is ready', () => connection.isReady())
    await expectSameStores(
      (clock) => ({ one: new ReferenceStore(clock), other: storeOver(connection, clock, 'sluice') }),
      {
        numRuns: 60,
        leases: true,
      },
    )
    await expect(commandOf(connection)('SET', 'sluice:1', 'x')).rejects.toMatchObject({
      message: expect.stringContaining('NOPERM'),
    })
    await expect(commandOf(connection)('HMGET', 'other', 'x')).rejects.toMatchObject({
      message: expect.stringContaining('NOPERM'),
    })
    // Nothing else was forbidden, not even what is not complained about.
    expect(await server.command('ACL', 'LOG')).toHaveLength(2)
  })

  it('gives what the scripts and the store use, and nothing else; the advice on NOPERM lists the same', async () => {
    const lua = new URL('../../lua/', import.meta.url)
    const files = (await readdir(lua, { recursive: true })).filter((name) => name.endsWith('.lua'))
    // The first names every command to try it. The second is only for resetAll, and shows the names of all keys.
    const used = files.filter((name) => name !== 'probe-commands.lua' && name !== 'scan-keys.lua')
    expect(used.length).toBe(files.length - 2)
    const texts = await Promise.all(used.map((name) => readFile(new URL(name, lua), 'utf8')))
    const called = texts.flatMap((text) => [...text.matchAll(/call\('([A-Z]+)'/g)].map(([, name]) => name!))
    // The store sends the last two without a script.
    const needed = [...new Set([...called, 'EVAL', 'EVALSHA', 'ZRANGEBYSCORE', 'HMGET'])].toSorted()
    expect(NEEDED_COMMANDS.toSorted()).toEqual(needed)
    const commandsIn = (rule: readonly string[]): string[] =>
      rule.filter((part) => part.startsWith('+')).map((part) => part.slice(1).toUpperCase())
    expect(commandsIn(await documentedRule()).toSorted()).toEqual(needed)
    const guide = await readFile(new URL('../../../../docs/guides/operate/redis-server.md', import.meta.url), 'utf8')
    const guided = /^ACL SETUSER sluice [^`]*/m.exec(guide)?.[0] ?? ''
    expect(commandsIn(guided.split(/\s+/)).toSorted()).toEqual(needed)
  })
})

/** The rule as the documentation of `connectByUrl` gives it. */
async function documentedRule(): Promise<string[]> {
  const text = await readFile(new URL('./connect-by-url.ts', import.meta.url), 'utf8')
  const rule = /`(resetkeys [^`]*)`/.exec(text)?.[1] ?? ''
  return rule.replaceAll('\n * ', ' ').split(' ')
}

describe('URLs that cannot be used', () => {
  it.each<[string, string | readonly string[], ConnectOptions]>([
    ['none', [], {}],
    ['several URLs of unknown topology', ['redis://a', 'redis://b'], {}],
    ['a cluster and sentinels', ['redis://a'], { cluster: true, sentinel: { name: 'x' } }],
    ['a database of a cluster', 'redis://a/1', { cluster: true }],
    ['different passwords', ['redis://:a@a', 'redis://:b@b'], { cluster: true }],
    ['TLS options without TLS', 'redis://a', { tls: {} }],
    ['a certificate that is none', 'rediss://a', { tls: { ca: 'not a certificate', cert: 'x', key: 'y' } }],
    ['another scheme', 'http://a', {}],
  ])('%s', (_, target, options) => {
    const attempt = (): unknown => connectByUrl(target, { ...options, timers: systemTimers })
    expect(attempt).toThrow(expect.objectContaining({ code: 'SLUICE_INVALID_OPTION' }))
  })
})
