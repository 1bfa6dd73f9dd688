import { createLimiter } from '@sluice/core'
import { type RedisServer, startRedis } from '@sluice/testing/servers'
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { redisStore } from './redis-store.ts'

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})

afterAll(() => server.close())
afterEach(() => void vi.useRealTimers())

it('calls are not held up by fake timers of the test, and go by the time of the server', async () => {
  const store = redisStore(server.url)
  await store.ready()
  vi.useFakeTimers()
  const limiter = createLimiter({ algorithm: 'fixed-window', limit: 4, window: '52w', store })
  expect(await limiter.check('key')).toMatchObject({ remaining: 3, failure: undefined })
  const together = await Promise.all([limiter.check('key'), limiter.check('key'), limiter.check('key')])
  expect(together.map(({ remaining }) => remaining)).toEqual([2, 1, 0])
  vi.advanceTimersByTime(2 * 52 * 7 * 86_400_000)
  expect(await limiter.check('key')).toMatchObject({ allowed: false, failure: undefined })
  await store.close()
  expect(vi.getTimerCount()).toBe(0)
})
