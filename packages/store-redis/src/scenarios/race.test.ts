import type { Rule } from '@sluice/core'
import { createLimiter, systemClock } from '@sluice/core'
import { startRedis } from '@sluice/testing/servers'
import { afterAll, describe, expect, it } from 'vitest'
import { redisStore } from '../redis-store.ts'
import { longWindowMs } from './ground.test.support.ts'
import { LimiterProcess } from './limiter-process.test.support.ts'
import { count, emptyTally, total } from './tally.test.support.ts'

const LIMIT = 100
const CALLS = 10_000
const PROCESSES = 8

const window = longWindowMs(systemClock.nowMicros() / 1000)

/** Every rule lets through exactly 100 in the time of the test. */
const rules: Readonly<Record<string, Rule>> = {
  gcra: { limit: LIMIT, window },
  'fixed-window': { algorithm: 'fixed-window', limit: LIMIT, window },
  'sliding-window-counter': { algorithm: 'sliding-window-counter', limit: LIMIT, window },
  'sliding-window-log': { algorithm: 'sliding-window-log', limit: LIMIT, window },
  segments: { algorithm: 'sliding-window-log', segments: 10, limit: LIMIT, window },
  'token-bucket': { algorithm: 'token-bucket', capacity: LIMIT, refillPerSecond: 0.001 },
  'leaky-bucket-meter': { algorithm: 'leaky-bucket-meter', capacity: LIMIT, leakPerSecond: 0.001 },
  hybrid: { algorithm: 'hybrid', limit: 60, window, burst: { capacity: 40, refillPerSecond: 0.001 } },
}

// Nothing may be decided without the store here, however busy the machine is.
const patient = { deadlineMs: 30_000, failureMode: 'closed' as const }

const server = await startRedis()
afterAll(() => server.close())

describe('ten thousand checks of one key at once', () => {
  it.each(Object.keys(rules))('from one process: exactly the limit is admitted by %s', async (rule) => {
    const store = redisStore(server.url, { ...patient, prefix: `one-${rule}` })
    await store.ready()
    const limiter = createLimiter<string, 'async'>({ store, rules }).limiter(rule)
    const tally = emptyTally()
    for (const decision of await Promise.all(Array.from({ length: CALLS }, () => limiter.check('hot')))) {
      count(tally, decision)
    }
    await store.close()
    expect(tally).toMatchObject({ allowed: LIMIT, denied: CALLS - LIMIT, failed: 0, deniedBy: [rule] })
  })

  it('from eight processes: each algorithm admits exactly the limit, and every denial names its rule', async () => {
    const options = { ...patient, prefix: 'many', denyCache: false as const }
    const processes = await LimiterProcess.startAll(PROCESSES, () => ({ target: server.url, options, rules }))
    try {
      for (const rule of Object.keys(rules)) {
        const order = { rule, key: `hot-${rule}`, calls: CALLS / PROCESSES, perTurn: 10 }
        const tallies = await Promise.all(processes.map((one) => one.order('burst', order)))
        expect({ rule, ...total(tallies) }).toMatchObject({
          rule,
          allowed: LIMIT,
          denied: CALLS - LIMIT,
          failed: 0,
          deniedBy: [rule],
        })
      }
    } finally {
      await Promise.all(processes.map((one) => one.close()))
    }
  })
})
