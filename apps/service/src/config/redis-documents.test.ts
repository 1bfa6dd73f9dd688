import { systemSleep } from '@sluice/runtime'
import { startRedis, startRedisCluster } from '@sluice/testing/servers'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RedisSettings } from '../settings/settings.ts'
import { connectRedis, redisDocuments } from './redis-connection.ts'

const COMMON = { sentinel: undefined, prefix: 'sluice', leases: false, failureMode: 'open', deadlineMs: 50 } as const

async function documentsOf(settings: RedisSettings): Promise<ReturnType<typeof redisDocuments>> {
  const link = await connectRedis(settings, systemSleep)
  onTestFinished(() => link.close())
  return redisDocuments(link, settings.prefix)
}

describe.each([
  ['one server', false],
  ['a cluster', true],
])('documents in Redis, on %s', (_, isCluster) => {
  async function start(): Promise<RedisSettings> {
    const server = await (isCluster ? startRedisCluster() : startRedis())
    onTestFinished(() => server.close())
    return { ...COMMON, isCluster, urls: 'urls' in server ? [...server.urls] : [server.url] }
  }

  it('are changed only by who has seen the newest', async () => {
    const settings = await start()
    const [one, other] = [await documentsOf(settings), await documentsOf(settings)]
    expect(await one.get('a')).toBeUndefined()
    expect(await one.put('a', 'too early', 1)).toBe(false)
    expect(await one.put('a', '{"text":"ä\\n"}\nsecond line', 0)).toBe(true)
    expect(await other.get('a')).toEqual({ revision: 1, body: '{"text":"ä\\n"}\nsecond line' })
    expect(await other.put('a', 'again', 0)).toBe(false)
    expect(await other.put('a', '2', 1)).toBe(true)
    expect(await one.put('a', 'late', 1)).toBe(false)
    expect(await one.get('a')).toEqual({ revision: 2, body: '2' })
    expect(await one.get('b')).toBeUndefined()
    expect(await (await documentsOf({ ...settings, prefix: 'other' })).get('a')).toBeUndefined()
  })

  it('lose no change of several who change them at the same time', async () => {
    const settings = await start()
    const nodes = await Promise.all(Array.from({ length: 4 }, () => documentsOf(settings)))
    await Promise.all(
      nodes.map(async (documents, node) => {
        for (let count = 0; count < 10; ) {
          const found = await documents.get('sum')
          const sums = JSON.parse(found?.body ?? '[0,0,0,0]') as number[]
          sums[node]!++
          if (await documents.put('sum', JSON.stringify(sums), found?.revision ?? 0)) count++
        }
      }),
    )
    expect(await nodes[0]!.get('sum')).toEqual({ revision: 40, body: '[10,10,10,10]' })
  })
})
