import type { FailureMode, Limiter } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import type { RedisServer } from '@sluice/testing/servers'
import { startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { RedisStore } from '../redis-store.ts'
import { redisStore } from '../redis-store.ts'
import { Callers, LONG_WINDOW, patience, pause, until } from './fault-trial.test.support.ts'

const DEADLINE_MS = 50
const PAUSE_MS = 1000
const MANY = 1_000_000

let server: RedisServer

beforeAll(async () => {
  server = await startRedis()
})

afterAll(() => server.close())

async function opened(failureMode: FailureMode): Promise<{ store: RedisStore; limiter: Limiter<'async'> }> {
  const store = redisStore(server.url, { deadlineMs: DEADLINE_MS, failureMode, prefix: failureMode })
  onTestFinished(() => store.close())
  await store.ready()
  return { store, limiter: createLimiter({ algorithm: 'fixed-window', limit: MANY, window: LONG_WINDOW, store }) }
}

describe('a server that stands still for a second under load', () => {
  it.for<FailureMode>(['closed', 'open', 'local'])(
    'loses no count, with failure mode %s',
    async (mode, { annotate }) => {
      const { store, limiter } = await opened(mode)
      const callers = new Callers(50, () => limiter.check('key'))
      await until('some are admitted', () => callers.tally.admitted > 200)
      await server.pause()
      await until('the breaker is open', () => store.stats().breaker === 'open')
      const { admitted } = callers.tally
      await pause(PAUSE_MS)
      expect(callers.tally.admitted).toBe(admitted)
      server.resume()
      const backMs = await until('Redis is used again', () => callers.tally.admitted > admitted + 100)
      const tally = await callers.stop()
      expect(tally.answered).toBe(tally.asked)
      expect(tally.longestMs).toBeLessThan(patience(DEADLINE_MS))
      expect(backMs).toBeLessThan(4000)
      // It answers all it was sent while it stood still, and so every outcome is known in the end.
      await until('every late answer has come', () => store.stats().calls.lateAnswers === tally.unknown)
      const given = mode === 'closed' ? tally.unknown : 0
      await until('unclaimed charges are given back', () => store.stats().calls.givenBack === given)
      const used = MANY - (await limiter.peek('key')).remaining!
      expect(used).toBe(tally.admitted + tally.unknown - given)
      expect(store.stats()).toMatchObject({ breaker: 'closed', calls: { pending: 0 } })
      expect(tally.unknown).toBeGreaterThan(0)
      await annotate(
        `stood still, ${mode}: ${tally}; ${given} given back, counted ${used}; back after ${backMs.toFixed(0)} ms`,
      )
    },
  )
})
