import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { HOSTILE_KEYS } from '../../properties/arbitraries.ts'
import type { RedisCluster } from './redis-cluster.ts'
import { startRedisCluster } from './redis-cluster.ts'

let cluster: RedisCluster

beforeAll(async () => {
  cluster = await startRedisCluster()
})

afterAll(() => cluster.close())

/** Another master than the one of this slot. */
function otherMaster(slot: number): RedisCluster['nodes'][number] {
  const { id } = cluster.masterOf(slot)
  return cluster.nodes.find((node) => node.role === 'master' && node.id !== id)!
}

describe('a cluster', () => {
  it('has three masters that share all slots, and a replica for each', () => {
    expect(cluster.nodes.map(({ role, slots }) => [role, slots])).toEqual([
      ['master', [[0, 5460]]],
      ['master', [[5461, 10_922]]],
      ['master', [[10_923, 16_383]]],
      ['replica', []],
      ['replica', []],
      ['replica', []],
    ])
    const masters = cluster.nodes.slice(0, 3)
    expect(masters.map((master) => cluster.replicaOf(master).server.port).toSorted()).toEqual(
      cluster.nodes
        .slice(3)
        .map(({ server }) => server.port)
        .toSorted(),
    )
    expect(cluster.urls).toEqual(cluster.nodes.map(({ server }) => `redis://127.0.0.1:${server.port}`))
  })

  it('serves on every node, and every node knows all others', async () => {
    for (const { server } of cluster.nodes) {
      const info = await server.command('CLUSTER', 'INFO')
      expect(info).toContain('cluster_state:ok')
      expect(info).toContain('cluster_known_nodes:6')
    }
  })

  it('puts keys where the servers look for them', async () => {
    for (const key of ['', 'a', 'user:{42}:minute', '{}a', '{a', '}{b}', ...HOSTILE_KEYS]) {
      const slot = cluster.slotOf(key)
      expect([key, slot]).toEqual([key, await cluster.nodes[0]!.server.command('CLUSTER', 'KEYSLOT', key)])
      const { server } = cluster.masterOf(slot)
      expect(await server.command('SET', key, 1)).toBe('OK')
      await expect(otherMaster(slot).server.command('GET', key)).rejects.toMatchObject({
        code: 'MOVED',
        message: `MOVED ${slot} 127.0.0.1:${server.port}`,
      })
    }
  })

  it('says what it does not have', () => {
    const replica = cluster.nodes[3]!
    expect(() => cluster.masterOf(16_384)).toThrow(expect.objectContaining({ code: 'SLUICE_TESTING_UNKNOWN_NODE' }))
    expect(() => cluster.replicaOf(replica)).toThrow(expect.objectContaining({ code: 'SLUICE_TESTING_UNKNOWN_NODE' }))
  })
})

describe('a migration', () => {
  it('can be held in the middle, where clients ask both nodes for keys', async () => {
    const [here, there] = ['here{half}', 'there{half}']
    const slot = cluster.slotOf(here)
    const [from, to] = [cluster.masterOf(slot), otherMaster(slot)]
    await from.server.command('MSET', here, 1, there, 2)

    const migration = await cluster.beginMigration(slot, to)
    expect(await migration.moveKeys([there, 'unknown{half}'])).toBe(1)
    expect(await from.server.command('GET', here)).toBe('1')
    const ask = `ASK ${slot} 127.0.0.1:${to.server.port}`
    await expect(from.server.command('GET', there)).rejects.toMatchObject({ code: 'ASK', message: ask })
    await expect(from.server.command('MGET', here, there)).rejects.toMatchObject({ code: 'TRYAGAIN' })
    await expect(to.server.command('GET', there)).rejects.toMatchObject({ code: 'MOVED' })
    const connection = await to.server.connect()
    try {
      await connection.send('ASKING')
      expect(await connection.send('GET', there)).toBe('2')
    } finally {
      await connection.close()
    }

    expect(await migration.moveKeys()).toBe(1)
    expect(await migration.moveKeys()).toBe(0)
    await migration.finish()
    expect(cluster.masterOf(slot).id).toBe(to.id)
    expect(await to.server.command('MGET', here, there)).toEqual(['1', '2'])
    const moved = `MOVED ${slot} 127.0.0.1:${to.server.port}`
    for (const { server, id } of cluster.nodes) {
      if (id !== to.id) await expect(server.command('GET', here)).rejects.toMatchObject({ message: moved })
    }
  })

  it('moves keys that are no text', async () => {
    const slot = cluster.slotOf('{bytes}')
    const [from, to] = [cluster.masterOf(slot), otherMaster(slot)]
    const key = '{bytes}\xff\x00\xc3'
    const [before, after] = [from, to].map(({ server }) => server.connect({ encoding: 'latin1' }))
    try {
      await (await before!).send('SET', key, 1)
      await cluster.migrateSlot(slot, to)
      expect(await (await after!).send('GET', key)).toBe('1')
    } finally {
      await Promise.all([before, after].map(async (connection) => (await connection!).close()))
    }
  })
})

describe('a fail-over', () => {
  it('in good order makes the replica the master, with every write, and the master a replica', async () => {
    const key = 'planned'
    const old = cluster.masterOf(cluster.slotOf(key))
    const replica = cluster.replicaOf(old)
    await old.server.command('SET', key, 1)
    const master = await cluster.failover(old)
    expect(master.id).toBe(replica.id)
    expect(master.slots).toEqual(old.slots)
    expect(await master.server.command('GET', key)).toBe('1')
    expect(cluster.replicaOf(master).id).toBe(old.id)
  })

  it('of a dead master is taken over, and the master comes back as a replica', async () => {
    const slot = cluster.slotOf('dead')
    const old = cluster.masterOf(slot)
    await old.server.kill()
    const master = await cluster.failover(old)
    expect(cluster.masterOf(slot).id).toBe(master.id)
    await old.server.restart()
    await cluster.untilSettled()
    expect(cluster.replicaOf(master).id).toBe(old.id)
  })

  it('happens by itself', async () => {
    const slot = cluster.slotOf('alone')
    const old = cluster.masterOf(slot)
    const replica = cluster.replicaOf(old)
    await old.server.kill()
    const master = await cluster.untilFailedOver(old)
    expect(master.id).toBe(replica.id)
    expect(await master.server.command('SET', 'alone', 1)).toBe('OK')
  })
})
