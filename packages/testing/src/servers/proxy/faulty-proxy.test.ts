import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { FakeClock } from '../../fakes/fake-clock.ts'
import { FakeTimers } from '../../fakes/fake-timers.ts'
import { freePort } from '../process/free-port.ts'
import type { RedisServer } from '../redis/redis-server.ts'
import { startRedis } from '../redis/redis-server.ts'
import { RedisConnection } from '../redis/redis-test-connection.ts'
import { FaultyProxy } from './faulty-proxy.ts'

/** Long for a machine under load; met within milliseconds. */
const SOON = { timeout: 10_000, interval: 5 }

const PING_BYTES = '*1\r\n$4\r\nPING\r\n'.length
const PONG_BYTES = '+PONG\r\n'.length

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})

beforeEach(() => server.command('FLUSHALL'))

afterAll(() => server.close())

async function startProxy(options: Partial<Parameters<typeof FaultyProxy.start>[0]> = {}): Promise<FaultyProxy> {
  const proxy = await FaultyProxy.start({ port: server.port, ...options })
  onTestFinished(() => proxy.close())
  return proxy
}

async function open(proxy: FaultyProxy): Promise<RedisConnection> {
  const connection = await RedisConnection.open({ port: proxy.port })
  onTestFinished(() => connection.close())
  return connection
}

/** How a command ends: its reply, or the code of the error underneath. */
function outcomeOf(reply: Promise<unknown>): Promise<unknown> {
  return reply.catch((error: { code: string; cause?: { code?: string } }) => error.cause?.code ?? error.code)
}

/** The connections of others that the server has: not that of the command which asks. */
async function serverConnections(): Promise<number> {
  return (
    String(await server.command('CLIENT', 'LIST'))
      .trimEnd()
      .split('\n').length - 1
  )
}

describe('a proxy that passes', () => {
  it('passes everything and counts it', async () => {
    const proxy = await startProxy()
    const one = await open(proxy)
    const other = await open(proxy)
    expect(await one.send('PING')).toBe('PONG')
    expect(await other.send('PING')).toBe('PONG')
    expect(proxy.mode).toBe('pass')
    expect(proxy.connections).toBe(2)
    expect(proxy.totals).toEqual({ connections: 2, toServer: 2 * PING_BYTES, toClients: 2 * PONG_BYTES, lost: 0 })
  })

  it('passes large replies whole', async () => {
    const proxy = await startProxy()
    const connection = await open(proxy)
    const text = 'sluice'.repeat(1_000_000)
    expect(await connection.send('ECHO', text)).toBe(text)
  })

  it('passes the end of either side', async () => {
    const proxy = await startProxy()
    const connection = await open(proxy)
    await connection.send('PING')
    await connection.close()
    await expect.poll(() => proxy.connections, SOON).toBe(0)
    await expect.poll(serverConnections, SOON).toBe(0)
    const other = await open(proxy)
    expect(await other.send('QUIT')).toBe('OK')
    expect(await outcomeOf(other.send('PING'))).toBe('SLUICE_TESTING_NO_REPLY')
    await expect.poll(() => proxy.connections, SOON).toBe(0)
  })

  it('resets clients when the server is down, and finds it when it is back', async () => {
    const port = await freePort()
    const proxy = await startProxy({ port })
    const early = await open(proxy)
    expect(await outcomeOf(early.send('PING'))).toBe('ECONNRESET')
    const late = await startRedis({ port })
    onTestFinished(() => late.close())
    const connection = await open(proxy)
    expect(await connection.send('PING')).toBe('PONG')
    await late.kill()
    await expect.poll(() => connection.isClosed, SOON).toBe(true)
  })
})

describe('a black hole', () => {
  it('takes in everything and passes nothing, on old connections and new ones', async () => {
    const proxy = await startProxy()
    const old = await open(proxy)
    await old.send('PING')
    await proxy.blackHole()
    const replies = [outcomeOf(old.send('INCR', 'a'))]
    const young = await open(proxy)
    replies.push(outcomeOf(young.send('INCR', 'a')))
    const lost = 2 * '*2\r\n$4\r\nINCR\r\n$1\r\na\r\n'.length
    await expect
      .poll(() => proxy.totals, SOON)
      .toEqual({ connections: 2, toServer: PING_BYTES, toClients: PONG_BYTES, lost })
    expect([old.isClosed, young.isClosed, proxy.connections]).toEqual([false, false, 2])
    await proxy.passThrough()
    // What was lost cannot be made up for.
    expect(await Promise.all(replies)).toEqual(['ECONNRESET', 'ECONNRESET'])
    expect(await server.command('GET', 'a')).toBeNull()
  })

  it('leaves connections whole that had nothing to say', async () => {
    const proxy = await startProxy()
    const connection = await open(proxy)
    await connection.send('PING')
    await proxy.blackHole()
    await proxy.passThrough()
    expect(await connection.send('PING')).toBe('PONG')
  })

  it('hides from each side that the other has gone', async () => {
    const proxy = await startProxy()
    const [first, second] = [await open(proxy), await open(proxy)]
    await Promise.all([first.send('PING'), second.send('PING')])
    await proxy.blackHole()
    await first.close()
    await expect.poll(() => proxy.connections, SOON).toBe(1)
    expect(await serverConnections()).toBe(2)
    await server.command('CLIENT', 'KILL', 'TYPE', 'normal')
    await expect.poll(serverConnections, SOON).toBe(0)
    expect(second.isClosed).toBe(false)
    const unheard = outcomeOf(second.send('PING'))
    await proxy.passThrough()
    expect(await unheard).toBe('ECONNRESET')
    await expect.poll(() => proxy.connections, SOON).toBe(0)
  })
})

describe('lost replies', () => {
  it('leave the server with the work done and the client without an answer', async () => {
    const proxy = await startProxy()
    const connection = await open(proxy)
    await connection.send('PING')
    await proxy.dropReplies()
    const reply = outcomeOf(connection.send('INCR', 'a'))
    await expect.poll(() => proxy.totals.lost, SOON).toBe(':1\r\n'.length)
    expect(await server.command('GET', 'a')).toBe('1')
    expect(connection.isClosed).toBe(false)
    await proxy.blackHole()
    expect(connection.isClosed).toBe(false)
    await proxy.passThrough()
    expect(await reply).toBe('ECONNRESET')
  })
})

describe('resetMidReply', () => {
  it.each([0, 3, PONG_BYTES])('lets %i bytes through and resets both sides', async (bytes) => {
    const proxy = await startProxy()
    const connection = await open(proxy)
    proxy.resetMidReply(bytes)
    const replied = await outcomeOf(connection.send('PING'))
    expect(replied).toBe(bytes === PONG_BYTES ? 'PONG' : 'ECONNRESET')
    await expect.poll(() => proxy.connections, SOON).toBe(0)
    await expect.poll(serverConnections, SOON).toBe(0)
    expect(proxy.totals).toMatchObject({ toClients: bytes, lost: PONG_BYTES - bytes })
  })

  it('happens once, on the connection that gets the next reply', async () => {
    const proxy = await startProxy()
    const [bystander, victim] = [await open(proxy), await open(proxy)]
    proxy.resetMidReply(3)
    expect(await outcomeOf(victim.send('PING'))).toBe('ECONNRESET')
    expect(await bystander.send('PING')).toBe('PONG')
    expect(await (await open(proxy)).send('PING')).toBe('PONG')
  })

  it('counts on through several replies of that connection', async () => {
    const proxy = await startProxy()
    const connection = await open(proxy)
    proxy.resetMidReply(PONG_BYTES + 1)
    expect(await connection.send('PING')).toBe('PONG')
    expect(await outcomeOf(connection.send('PING'))).toBe('ECONNRESET')
  })

  it('wants a whole number', async () => {
    const proxy = await startProxy()
    for (const wrong of [-1, 1.5, Number.NaN]) {
      expect(() => proxy.resetMidReply(wrong)).toThrow(expect.objectContaining({ code: 'SLUICE_INVALID_OPTION' }))
    }
  })
})

describe('resetAll', () => {
  it('resets what is open and lets new connections in', async () => {
    const proxy = await startProxy()
    const connection = await open(proxy)
    const reply = outcomeOf(connection.send('BLPOP', 'empty', 0))
    await expect.poll(() => proxy.totals.toServer, SOON).toBeGreaterThan(0)
    proxy.resetAll()
    expect(await reply).toBe('ECONNRESET')
    expect(await (await open(proxy)).send('PING')).toBe('PONG')
  })
})

describe('a reset', () => {
  it('ends a connection that is just being ended in good order', async () => {
    const timers = new FakeTimers(new FakeClock())
    const proxy = await startProxy({ timers })
    const connection = await open(proxy)
    proxy.delay(100)
    const reply = outcomeOf(connection.send('QUIT'))
    // The reply and the end.
    await expect.poll(() => timers.pending, SOON).toBe(2)
    await timers.advance(100)
    proxy.resetAll()
    expect(await reply).toBe('OK')
    await proxy.close()
    expect(proxy.connections).toBe(0)
  })
})

describe('refuse', () => {
  it('refuses new connections, leaves the old ones, and is undone on the same port', async () => {
    const proxy = await startProxy()
    const connection = await open(proxy)
    await proxy.refuse()
    expect(proxy.mode).toBe('refuse')
    expect(await outcomeOf(open(proxy))).toBe('ECONNREFUSED')
    expect(await connection.send('PING')).toBe('PONG')
    await proxy.passThrough()
    expect(await (await open(proxy)).send('PING')).toBe('PONG')
    expect(await connection.send('PING')).toBe('PONG')
  })
})

describe('delay', () => {
  it('holds replies back for its time, in order, also when it becomes shorter', async () => {
    const timers = new FakeTimers(new FakeClock())
    const proxy = await startProxy({ timers })
    const connection = await open(proxy)
    const heard: unknown[] = []
    const hear = (reply: unknown): void => void heard.push(reply)
    proxy.delay(100)
    const first = connection.send('ECHO', 'first').then(hear)
    await expect.poll(() => timers.pending, SOON).toBe(1)
    await timers.advance(50)
    proxy.delay(20)
    const second = connection.send('ECHO', 'second').then(hear)
    await expect.poll(() => timers.pending, SOON).toBe(2)
    await timers.advance(49)
    expect(proxy.totals.toClients).toBe(0)
    proxy.delay(0)
    await timers.advance(1)
    await Promise.all([first, second])
    expect(heard).toEqual(['first', 'second'])
    expect(await connection.send('PING')).toBe('PONG')
    expect(timers.pending).toBe(0)
  })

  it('does not let through what is late once replies are lost', async () => {
    const timers = new FakeTimers(new FakeClock())
    const proxy = await startProxy({ timers })
    const connection = await open(proxy)
    proxy.delay(100)
    const reply = outcomeOf(connection.send('PING'))
    await expect.poll(() => timers.pending, SOON).toBe(1)
    await proxy.dropReplies()
    await timers.advance(100)
    expect(proxy.totals).toMatchObject({ toClients: 0, lost: PONG_BYTES })
    await proxy.passThrough()
    expect(await reply).toBe('ECONNRESET')
  })
})

describe('close', () => {
  it('ends every connection and timer, once and for all', async () => {
    const timers = new FakeTimers(new FakeClock())
    const proxy = await startProxy({ timers })
    const connection = await open(proxy)
    proxy.delay(100)
    const reply = outcomeOf(connection.send('PING'))
    await expect.poll(() => timers.pending, SOON).toBe(1)
    await proxy.close()
    await proxy.close()
    expect(await reply).toBe('ECONNRESET')
    expect([proxy.connections, timers.pending]).toEqual([0, 0])
    expect(await outcomeOf(open(proxy))).toBe('ECONNREFUSED')
    await expect(proxy.passThrough()).rejects.toMatchObject({ code: 'SLUICE_TESTING_NOT_RUNNING' })
  })
})
