import { createServer } from 'node:net'
import { Cluster, Redis } from 'ioredis'
import { createClient, createClientPool, createCluster } from 'redis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ScriptRunner } from '../wire/script-runner.ts'
import { recogniseClient } from './recognise-client.ts'

const UNREACHABLE = { host: '127.0.0.1', port: 1 }
const SAFE = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0, enableOfflineQueue: false }
const SAFE_CLUSTER = {
  enableOfflineQueue: false,
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  retryDelayOnTryAgain: 0,
  redisOptions: SAFE,
}

describe('something that is no client', () => {
  it.each([undefined, null, 7, 'text', {}, { sendCommand: 1 }, () => undefined, new Map(), createClientPool()])(
    'is rejected: %s',
    (value) => {
      expect(() => recogniseClient(value)).toThrow(
        expect.objectContaining({
          code: 'SLUICE_INVALID_OPTION',
          message: expect.stringMatching(/received .*expected .*node-redis.*ioredis.*valkey-glide.*redis:\/\//),
        }),
      )
    },
  )
})

describe('a client of node-redis that is not connected', () => {
  it.each([
    ['createClient', createClient({ socket: UNREACHABLE })],
    ['createCluster', createCluster({ rootNodes: [{ socket: UNREACHABLE }] })],
  ])('says so on use (%s)', async (maker, client) => {
    const connection = recogniseClient(client)
    expect(connection.isReady()).toBe(false)
    const runner = new ScriptRunner(connection, () => Promise.resolve())
    await expect(runner.command(['GET', 'x'], 'x')).rejects.toThrow(
      expect.objectContaining({
        code: 'SLUICE_INVALID_OPTION',
        message: expect.stringMatching(new RegExp(`${maker}.*await client\\.connect\\(\\)`)),
      }),
    )
  })

  it('is only unavailable once it is connected', async () => {
    const client = createClient({ socket: { ...UNREACHABLE, reconnectStrategy: false } })
    client.on('error', () => undefined)
    const connection = recogniseClient(client)
    const runner = new ScriptRunner(connection, () => Promise.resolve())
    const connecting = client.connect().catch(() => undefined)
    await expect(runner.command(['GET', 'x'], 'x')).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
    await connecting
    expect(client.isOpen).toBe(false)
    await expect(runner.command(['GET', 'x'], 'x')).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
  })
})

describe('a client of ioredis', () => {
  it('is used itself when its options are safe, and left open', async () => {
    const client = new Redis({ ...UNREACHABLE, ...SAFE, lazyConnect: true })
    onTestFinished(() => client.disconnect())
    let duplicates = 0
    const watched = Object.assign(client, { duplicate: () => duplicates++ })
    const connection = recogniseClient(watched)
    await connection.close()
    expect([duplicates, client.status]).toEqual([0, 'wait'])
  })

  it.each([
    ['autoResendUnfulfilledCommands', true],
    ['maxRetriesPerRequest', null],
    ['maxRetriesPerRequest', 1],
    ['enableOfflineQueue', true],
    ['enableAutoPipelining', true],
    ['keyPrefix', 'app:'],
    ['stringNumbers', true],
  ])('is replaced by one of the store when it has %s: %s', async (name, value) => {
    const client = new Redis({ ...UNREACHABLE, ...SAFE, lazyConnect: true, [name]: value })
    onTestFinished(() => client.disconnect())
    const copies: Redis[] = []
    const duplicate = client.duplicate.bind(client)
    Object.assign(client, {
      duplicate: (options: object) => {
        copies.push(duplicate({ ...options, lazyConnect: true }))
        return copies[0]
      },
    })
    const connection = recogniseClient(client)
    expect(copies[0]?.options).toMatchObject({ ...SAFE, ...UNREACHABLE, enableAutoPipelining: false, keyPrefix: '' })
    await connection.close()
    expect([copies[0]?.status, client.status]).toEqual(['end', 'wait'])
  })

  it('is connected by the first use when it is lazy', async () => {
    const arrived = Promise.withResolvers<void>()
    const listener = createServer((socket) => {
      arrived.resolve()
      socket.destroy()
    })
    await new Promise<void>((resolve) => void listener.listen(0, '127.0.0.1', resolve))
    const { port } = listener.address() as { port: number }
    const client = new Redis({ host: '127.0.0.1', port, ...SAFE, lazyConnect: true, retryStrategy: () => null })
    client.on('error', () => undefined)
    onTestFinished(() => {
      client.disconnect()
      listener.close()
    })
    expect(recogniseClient(client).isReady()).toBe(false)
    await arrived.promise
  })
})

describe('a cluster of ioredis', () => {
  it('is used itself when its options are safe', async () => {
    const client = new Cluster([UNREACHABLE], { ...SAFE_CLUSTER, lazyConnect: true })
    onTestFinished(() => client.disconnect())
    let duplicates = 0
    Object.assign(client, { duplicate: () => duplicates++ })
    await recogniseClient(client).close()
    expect([duplicates, client.status]).toEqual([0, 'wait'])
  })

  it.each([
    ['enableOfflineQueue', true],
    ['retryDelayOnFailover', 100],
    ['scaleReads', 'slave' as const],
    ['redisOptions', {}],
    ['redisOptions', { ...SAFE, keyPrefix: 'app:' }],
  ])('is replaced by one of the store when it has %s: %s', async (name, value) => {
    const client = new Cluster([UNREACHABLE], { ...SAFE_CLUSTER, lazyConnect: true, [name]: value })
    onTestFinished(() => client.disconnect())
    const copies: Cluster[] = []
    const duplicate = client.duplicate.bind(client)
    Object.assign(client, {
      duplicate: (nodes: never[], options: object) => {
        copies.push(duplicate(nodes, { ...options, lazyConnect: true }))
        return copies[0]
      },
    })
    await recogniseClient(client).close()
    expect(copies[0]?.options).toMatchObject({
      enableOfflineQueue: false,
      retryDelayOnFailover: 0,
      scaleReads: 'master',
      keyPrefix: '',
      redisOptions: { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 },
    })
    expect(client.status).toBe('wait')
  })
})
