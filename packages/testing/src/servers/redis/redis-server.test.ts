import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { freePort } from '../process/free-port.ts'
import type { RedisOptions, RedisServer } from './redis-server.ts'
import { startRedis } from './redis-server.ts'
import { RedisConnection } from './redis-test-connection.ts'

/** Long for a machine under load; met within milliseconds. */
const SOON = { timeout: 10_000, interval: 5 }

async function start(options: RedisOptions = {}): Promise<RedisServer> {
  const server = await startRedis(options)
  onTestFinished(() => server.close())
  return server
}

/** Whether there is a process of this id that has not ended. */
function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

async function folderOf(server: RedisServer): Promise<string> {
  const [, folder] = (await server.command('CONFIG', 'GET', 'dir')) as readonly string[]
  return folder!
}

describe('a Redis server', () => {
  it('answers as soon as it is there, and keeps nothing on disk', async () => {
    const server = await start()
    expect(server).toMatchObject({ host: '127.0.0.1', url: `redis://127.0.0.1:${server.port}`, status: 'running' })
    expect(await server.command('PING')).toBe('PONG')
    expect(await server.command('CONFIG', 'GET', 'save')).toEqual(['save', ''])
    expect(await server.command('CONFIG', 'GET', 'appendonly')).toEqual(['appendonly', 'no'])
    expect(await server.command('INFO', 'server')).toContain(`process_id:${server.pid}\r\n`)
    expect(server.log).toContain('Ready to accept connections')
  })

  it('is gone after close, with its folder, and can be closed again', async () => {
    const server = await start()
    const folder = await folderOf(server)
    expect(existsSync(folder)).toBe(true)
    await server.close()
    await server.close()
    expect(isAlive(server.pid)).toBe(false)
    expect(existsSync(folder)).toBe(false)
    await expect(server.command('PING')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await expect(server.restart()).rejects.toMatchObject({ code: 'SLUICE_TESTING_NOT_RUNNING' })
  })

  it('takes its own connection for each command, and lends one that lasts', async () => {
    const server = await start()
    await server.command('SELECT', 3)
    expect(await server.command('CLIENT', 'INFO')).toContain(' db=0 ')
    const connection = await server.connect()
    onTestFinished(() => connection.close())
    await connection.send('SELECT', 3)
    expect(await connection.send('CLIENT', 'INFO')).toContain(' db=3 ')
  })

  it('passes the errors of the server on', async () => {
    const server = await start()
    await server.command('SET', 'text', 'a')
    await expect(server.command('INCR', 'text')).rejects.toMatchObject({ name: 'RedisReplyError', code: 'ERR' })
  })

  it('takes directives and arguments', async () => {
    const server = await start({
      config: { maxmemory: '10mb', 'client-output-buffer-limit': 'normal 1 1 1' },
      args: ['--hz', '42'],
    })
    expect(await server.command('CONFIG', 'GET', 'maxmemory')).toEqual(['maxmemory', String(10 * 2 ** 20)])
    expect(String(await server.command('CONFIG', 'GET', 'client-output-buffer-limit'))).toContain('normal 1 1 1')
    expect(await server.command('CONFIG', 'GET', 'hz')).toEqual(['hz', '42'])
  })
})

describe('a server that goes away', () => {
  it('is restarted on the same port without its data', async () => {
    const server = await start()
    const { port, pid } = server
    await server.command('SET', 'a', 1)
    await server.kill()
    expect(server.status).toBe('ended')
    await expect(server.command('PING')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await server.restart()
    expect(server).toMatchObject({ port, status: 'running' })
    expect(server.pid).not.toBe(pid)
    expect(await server.command('GET', 'a')).toBeNull()
  })

  it('is restarted with its data when it is configured to save', async () => {
    const server = await start({ config: { appendonly: 'yes', appendfsync: 'always' } })
    await server.command('SET', 'a', 1)
    await server.kill()
    await server.restart()
    expect(await server.command('GET', 'a')).toBe('1')
  })

  it('saves at an orderly stop, which a restart of a running server begins with', async () => {
    const server = await start({ config: { save: '3600 1' } })
    await server.command('SET', 'a', 1)
    await server.restart()
    expect(await server.command('GET', 'a')).toBe('1')
    await server.stop()
    expect(server.status).toBe('ended')
  })

  it('hangs while paused and then answers what it was sent', async () => {
    const server = await start()
    const connection = await server.connect()
    onTestFinished(() => connection.close())
    await server.pause()
    expect(server.status).toBe('paused')
    let isAnswered = false
    const reply = connection.send('PING').then((answer) => {
      isAnswered = true
      return answer
    })
    const silent = await RedisConnection.open({ port: server.port, replyWithinMs: 100 })
    await expect(silent.send('PING')).rejects.toMatchObject({ code: 'SLUICE_TESTING_NO_REPLY' })
    expect(isAnswered).toBe(false)
    server.resume()
    expect(await reply).toBe('PONG')
    expect(server.status).toBe('running')
  })

  it('can be stopped, killed, restarted and closed while paused', async () => {
    const server = await start()
    await server.pause()
    await server.restart()
    expect(await server.command('PING')).toBe('PONG')
    await server.pause()
    await server.kill()
    expect(server.status).toBe('ended')
    await expect(server.pause()).rejects.toMatchObject({ code: 'SLUICE_TESTING_NOT_RUNNING' })
    await server.restart()
    await server.pause()
    await server.close()
    expect(isAlive(server.pid)).toBe(false)
  })

  it('is closed although a restart is in progress', async () => {
    const server = await start()
    const restarted = server.restart()
    await server.close()
    await restarted
    expect(isAlive(server.pid)).toBe(false)
  })

  it('ends with the process that started it, and leaves no folder', async () => {
    const module = JSON.stringify(new URL('./redis-server.ts', import.meta.url).href)
    const program = `
      const { startRedis } = await import(${module})
      const server = await startRedis()
      console.log(JSON.stringify([server.pid, (await server.command('CONFIG', 'GET', 'dir'))[1]]))
      setInterval(() => undefined, 1000)
    `
    const args = ['--conditions=source', '--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program]
    const parent = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const ended = new Promise((resolve) => parent.once('exit', resolve))
    const line = await new Promise<Buffer>((resolve) => parent.stdout.once('data', resolve))
    const [pid, folder] = JSON.parse(line.toString()) as [number, string]
    expect([isAlive(pid), existsSync(folder)]).toEqual([true, true])
    parent.kill('SIGKILL')
    await ended
    await expect.poll(() => [isAlive(pid), existsSync(folder)], SOON).toEqual([false, false])
  })
})

describe('a server that cannot start', () => {
  it('names the port that is taken, also when its owner would not let us in', async () => {
    const { port } = await start({ password: 'secret' })
    const failure = startRedis({ port })
    await expect(failure).rejects.toMatchObject({ code: 'SLUICE_TESTING_PORT_TAKEN' })
    await expect(failure).rejects.toThrow(new RegExp(`port ${port} of 127\\.0\\.0\\.1.*\n.*`))
    await expect(failure).rejects.toThrow('Address already in use')
  })

  it('shows its log', async () => {
    const failure = startRedis({ port: await freePort(), config: { 'no-such-directive': '1' } })
    await expect(failure).rejects.toMatchObject({ code: 'SLUICE_TESTING_START_FAILED' })
    await expect(failure).rejects.toThrow("'no-such-directive 1'")
  })
})

describe('a server with users', () => {
  it('wants the password of the default user', async () => {
    const server = await start({ password: 'p w"\\' })
    expect(server.url).toBe(`redis://:p%20w%22%5C@127.0.0.1:${server.port}`)
    expect(await server.command('ACL', 'WHOAMI')).toBe('default')
    const stranger = await RedisConnection.open({ port: server.port })
    onTestFinished(() => stranger.close())
    await expect(stranger.send('PING')).rejects.toMatchObject({ code: 'NOAUTH' })
  })

  it('lets in only the user by name', async () => {
    const server = await start({ aclUser: { name: 'alice', password: 'secret' } })
    expect(server.url).toBe(`redis://alice:secret@127.0.0.1:${server.port}`)
    expect(await server.command('ACL', 'WHOAMI')).toBe('alice')
    const stranger = RedisConnection.open({ port: server.port, password: 'secret' })
    await expect(stranger).rejects.toMatchObject({ code: 'WRONGPASS' })
  })

  it('lets in both when both are given', async () => {
    const server = await start({ password: 'common', aclUser: { name: 'alice', password: 'secret' } })
    expect(await server.command('ACL', 'WHOAMI')).toBe('alice')
    const other = await RedisConnection.open({ port: server.port, password: 'common' })
    onTestFinished(() => other.close())
    expect(await other.send('ACL', 'WHOAMI')).toBe('default')
  })
})

describe('a server with TLS', () => {
  let server: RedisServer

  beforeAll(async () => {
    server = await startRedis({ tls: true, password: 'secret' })
    return () => server.close()
  })

  it('speaks TLS to those who trust its certificate', async () => {
    expect(server.url).toBe(`rediss://:secret@127.0.0.1:${server.port}`)
    expect(server.ca).toContain('BEGIN CERTIFICATE')
    expect(await server.command('PING')).toBe('PONG')
  })

  it('speaks nothing else, and with a certificate of its own', async () => {
    const plain = await RedisConnection.open({ port: server.port })
    await expect(plain.send('PING')).rejects.toMatchObject({ code: 'SLUICE_TESTING_NO_REPLY' })
    const other = await start({ tls: true })
    const misled = RedisConnection.open({ port: server.port, ca: other.ca! })
    await expect(misled).rejects.toMatchObject({ code: expect.stringMatching(/CERT|SELF_SIGNED/) })
  })

  it('keeps its certificate when it is restarted', async () => {
    await server.restart()
    expect(await server.command('PING')).toBe('PONG')
  })
})
