import type { Limiter } from '@sluice/core'
import { createLimiter } from '@sluice/core'
import { FakeClock, START_MICROS, seededRandom } from '@sluice/testing'
import { startRedis } from '@sluice/testing/servers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisStore, redisStore } from '../redis-store.ts'
import { figure } from './ground.test.support.ts'

const LIMIT = 100
const WINDOW_MS = 10_000
const STEP_MS = 20

const server = await startRedis()
afterAll(() => server.close())

const random = seededRandom(3)
const chance = (): number => random.nextUint32() / 2 ** 32

/** How many calls come at each step; `elapsedMs` counts from the beginning of a window. */
const shapes: Readonly<Record<string, (elapsedMs: number) => number>> = {
  'steady traffic at the limit': () => (chance() < (LIMIT / WINDOW_MS) * STEP_MS * 1.2 ? 1 : 0),
  'bursts at random': () => (chance() < 0.01 ? 1 + Math.floor(chance() * LIMIT) : 0),
  // All at the end of a window, and then again and again: the estimate takes the burst for spread over its window.
  'the worst an adversary can do': (elapsedMs) => (elapsedMs < WINDOW_MS - STEP_MS ? 0 : LIMIT),
}

/** The most instants that lie in any one window. */
function mostInAnyWindow(instantsMs: readonly number[]): number {
  let first = 0
  return instantsMs.reduce((most, instant, index) => {
    while (instantsMs[first]! <= instant - WINDOW_MS) first++
    return Math.max(most, index - first + 1)
  }, 0)
}

describe('the sliding window counter, held against an exact log of what it let through', () => {
  let store: RedisStore
  let limiter: Limiter<'async'>
  const clock = new FakeClock()

  beforeAll(() => {
    store = redisStore(server.url, { clock, denyCache: false, deadlineMs: 20_000, failureMode: 'closed' })
    limiter = createLimiter({ store, algorithm: 'sliding-window-counter', limit: LIMIT, window: WINDOW_MS })
  })

  afterAll(() => store.close())

  it.each(Object.keys(shapes))('admits less than twice the limit in any window: %s', async (shape) => {
    const startMs = Math.ceil((clock.nowMicros() - START_MICROS) / 1000 / WINDOW_MS) * WINDOW_MS + START_MICROS / 1000
    const nowMs = (): number => clock.nowMicros() / 1000
    clock.advance(startMs - (startMs % WINDOW_MS) + WINDOW_MS - nowMs())
    const beginMs = nowMs()
    const admittedMs: number[] = []
    for (; nowMs() - beginMs < 4 * WINDOW_MS; clock.advance(STEP_MS)) {
      const calls = shapes[shape]!(nowMs() - beginMs)
      const decisions = await Promise.all(Array.from({ length: calls }, () => limiter.check(shape)))
      for (const { allowed, failure } of decisions) {
        expect(failure).toBeUndefined()
        if (allowed) admittedMs.push(nowMs())
      }
    }
    const most = mostInAnyWindow(admittedMs)
    figure(
      `${shape}: at most ${most} in any window of a limit of ${LIMIT} (${admittedMs.length} admitted in 4 windows)`,
    )
    expect(most).toBeLessThan(2 * LIMIT)
    if (shape.startsWith('the worst')) expect(most).toBeGreaterThan(1.8 * LIMIT)
  })
})
