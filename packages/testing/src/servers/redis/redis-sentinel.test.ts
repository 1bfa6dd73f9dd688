import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SentinelGroup } from './redis-sentinel.ts'
import { startSentinel } from './redis-sentinel.ts'

/** Long for a machine under load; met within milliseconds. */
const SOON = { timeout: 10_000, interval: 5 }

let group: SentinelGroup

beforeAll(async () => {
  group = await startSentinel()
})

afterAll(() => group.close())

describe('a group with sentinels', () => {
  it('has a primary, a replica with its data, and sentinels that know all of them', async () => {
    const { primary, replicas, sentinels, masterName } = group
    expect([replicas.length, sentinels.length]).toEqual([1, 3])
    expect(await group.currentPrimary()).toBe(primary)
    expect(await replicas[0]!.command('ROLE')).toEqual([
      'slave',
      primary.host,
      primary.port,
      'connected',
      expect.any(Number),
    ])
    for (const sentinel of sentinels) {
      expect(await sentinel.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', masterName)).toEqual([
        primary.host,
        String(primary.port),
      ])
      expect(await sentinel.command('SENTINEL', 'CKQUORUM', masterName)).toMatch(/^OK 3 usable Sentinels/)
    }
  })

  it('passes writes on to the replica', async () => {
    const { primary, replicas } = group
    await primary.command('SET', 'early', 1)
    await expect.poll(() => replicas[0]!.command('GET', 'early'), SOON).toBe('1')
  })

  it('fails over on command; the old primary becomes a replica of the new one', async () => {
    const { primary } = group
    const [replica] = group.replicas
    expect(await group.failover()).toBe(replica)
    expect(await group.currentPrimary()).toBe(replica)
    expect(await replica!.command('GET', 'early')).toBe('1')
    await expect(primary.command('SET', 'late', 1)).rejects.toMatchObject({ code: 'READONLY' })
  })

  it('fails over by itself when the primary is gone', async () => {
    const old = await group.currentPrimary()
    await old.kill()
    const primary = await group.untilFailedOver(old)
    expect(primary).not.toBe(old)
    expect(await primary.command('SET', 'late', 1)).toBe('OK')
  })
})
