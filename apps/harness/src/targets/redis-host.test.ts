import { once } from 'node:events'
import type { Socket } from 'node:net'
import { createServer } from 'node:net'
import type { Timers } from '@sluice/core'
import { systemRandom, systemTimers } from '@sluice/core'
import { freePort, RedisConnection, startRedis } from '@sluice/testing/servers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openRedisHost } from './redis-host.ts'

const PARTS = { timers: systemTimers, random: systemRandom }

/** A port where connections are accepted and nothing is ever answered. */
async function listenSilently(onConnection: () => void): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('data', onConnection)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The server has no port.')
  return address.port
}

describe('openRedisHost', () => {
  it('starts a server, and ends it', async () => {
    const host = await openRedisHost(undefined, PARTS)
    const port = Number(new URL(host.url).port)
    const connection = await RedisConnection.open({ port })
    expect(await connection.send('PING')).toBe('PONG')
    await connection.close()
    await host.close()
    await expect(RedisConnection.open({ port })).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  it('removes its keys, and no others, from a server that was there', async () => {
    const server = await startRedis()
    onTestFinished(() => server.close())
    const host = await openRedisHost(server.url, PARTS)
    const other = await openRedisHost(server.url, PARTS)
    expect(other.prefix).not.toBe(host.prefix)
    const theirs = ['sluice:1:{=user}', `${other.prefix}:1:{=node}`]
    const ours = Array.from({ length: 2500 }, (_, index) => `${host.prefix}:${index}:{=node}`)
    await server.command('MSET', ...[...theirs, ...ours].flatMap((key) => [key, 'x']))
    await host.close()
    expect((await server.command('KEYS', '*')) as string[]).toHaveLength(theirs.length)
    await other.close()
    expect(await server.command('KEYS', '*')).toEqual(theirs.slice(0, 1))
  })

  it('closes when its server is gone', async () => {
    const server = await startRedis()
    const host = await openRedisHost(server.url, PARTS)
    await server.close()
    await host.close()
  })

  it('names the address where nothing listens, without the password', async () => {
    const port = await freePort()
    const opening = openRedisHost(`redis://me:secret@127.0.0.1:${port}`, PARTS)
    await expect(opening).rejects.toMatchObject({
      code: 'SLUICE_HARNESS_REDIS_UNAVAILABLE',
      received: expect.stringMatching(new RegExp(`ECONNREFUSED.* from 127\\.0\\.0\\.1:${port}$`)),
      message: expect.not.stringContaining('secret'),
    })
  })

  it('says what a server answered that does not let it in', async () => {
    const server = await startRedis({ password: 'right' })
    onTestFinished(() => server.close())
    const opening = openRedisHost(`redis://:wrong@127.0.0.1:${server.port}`, PARTS)
    await expect(opening).rejects.toMatchObject({
      code: 'SLUICE_HARNESS_REDIS_UNAVAILABLE',
      received: expect.stringContaining('WRONGPASS'),
    })
  })

  it('gives up on a server that does not answer', async () => {
    let giveUp = (): void => undefined
    const timers: Timers = {
      schedule: (_delayMs, run) => {
        giveUp = run
        return () => undefined
      },
    }
    const port = await listenSilently(() => giveUp())
    await expect(openRedisHost(`redis://127.0.0.1:${port}`, { ...PARTS, timers })).rejects.toMatchObject({
      code: 'SLUICE_HARNESS_REDIS_UNAVAILABLE',
      received: `no answer within 3000 ms from 127.0.0.1:${port}`,
    })
  })
})
