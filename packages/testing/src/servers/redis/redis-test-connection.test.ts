import type { AddressInfo, Socket } from 'node:net'
import { createServer } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { FakeClock } from '../../fakes/fake-clock.ts'
import { FakeTimers } from '../../fakes/fake-timers.ts'
import { freePort, LOOPBACK } from '../process/free-port.ts'
import { RedisConnection } from './redis-test-connection.ts'

/** A server that does this with what it receives; its port. */
async function serve(receive: (text: string, socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('data', (bytes) => receive(bytes.toString(), socket)).on('error', () => socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, LOOPBACK, resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise((resolve) => server.close(() => resolve()))
  })
  return (server.address() as AddressInfo).port
}

async function open(...[options]: Parameters<typeof RedisConnection.open>): Promise<RedisConnection> {
  const connection = await RedisConnection.open(options)
  onTestFinished(() => connection.close())
  return connection
}

describe('RedisConnection', () => {
  it('sends commands as arrays of strings, measured in bytes', async () => {
    const received: string[] = []
    const port = await serve((text, socket) => {
      received.push(text)
      socket.write('+OK\r\n')
    })
    const connection = await open({ port })
    expect(await connection.send('SET', 'é', 12)).toBe('OK')
    expect(received).toEqual(['*3\r\n$3\r\nSET\r\n$2\r\né\r\n$2\r\n12\r\n'])
  })

  it('answers commands in flight in their order', async () => {
    let count = 0
    const port = await serve((_, socket) => {
      if (count++ === 0) socket.write('+first\r\n-ERR second\r\n:3\r\n')
    })
    const connection = await open({ port })
    const replies = await Promise.allSettled(['a', 'b', 'c'].map((name) => connection.send(name)))
    expect(replies).toEqual([
      { status: 'fulfilled', value: 'first' },
      { status: 'rejected', reason: expect.objectContaining({ code: 'ERR', message: 'ERR second' }) },
      { status: 'fulfilled', value: 3 },
    ])
  })

  it('ends when no reply comes in time', async () => {
    const timers = new FakeTimers(new FakeClock())
    const port = await serve(() => undefined)
    const connection = await open({ port, replyWithinMs: 100, timers })
    const first = connection.send('PING')
    await timers.advance(99)
    expect(connection.isClosed).toBe(false)
    await timers.advance(1)
    await expect(first).rejects.toMatchObject({
      code: 'SLUICE_TESTING_NO_REPLY',
      cause: expect.objectContaining({ message: 'silent for 100 ms' }),
    })
    expect(connection.isClosed).toBe(true)
    await expect(connection.send('PING')).rejects.toMatchObject({ code: 'SLUICE_TESTING_NO_REPLY' })
    expect(timers.pending).toBe(0)
  })

  it('ends when the server ends it in the middle of a reply', async () => {
    const port = await serve((_, socket) => socket.end('$10\r\nhalf'))
    const connection = await open({ port })
    await expect(connection.send('GET', 'a')).rejects.toMatchObject({ code: 'SLUICE_TESTING_NO_REPLY' })
  })

  it('ends when the server speaks something else', async () => {
    const port = await serve((_, socket) => socket.write('HTTP/1.1 400 Bad Request\r\n'))
    const connection = await open({ port })
    await expect(connection.send('PING')).rejects.toMatchObject({
      cause: expect.objectContaining({ message: expect.stringContaining('Is it one?') }),
    })
  })

  it('reports that nothing listens', async () => {
    await expect(open({ port: await freePort() })).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  it('leaves nothing open when it is not let in', async () => {
    let ended: Promise<unknown> | undefined
    const port = await serve((_, socket) => {
      ended = new Promise((resolve) => socket.once('close', resolve))
      socket.write('-WRONGPASS no\r\n')
    })
    await expect(open({ port, password: 'wrong' })).rejects.toMatchObject({ code: 'WRONGPASS' })
    await ended
  })
})
