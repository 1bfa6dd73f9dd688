import type { Rule } from '@sluice/core'
import { createLimiter, systemClock } from '@sluice/core'
import { FakeClock, START_MICROS } from '@sluice/testing'
import { startRedis } from '@sluice/testing/servers'
import { afterAll, describe, expect, it } from 'vitest'
import { redisStore } from '../redis-store.ts'
import { figure, longWindowMs } from './ground.test.support.ts'
import { LimiterProcess } from './limiter-process.test.support.ts'
import { total } from './tally.test.support.ts'

const LIMIT = 90
const MINUTE_MS = 60_000
const window = longWindowMs(systemClock.nowMicros() / 1000)
// Wrong clocks are in another hour than the server, which itself must not come to the next one during the test.
const calendar = (systemClock.nowMicros() / 1000) % (60 * MINUTE_MS) < 59 * MINUTE_MS ? 'hour' : 'month'
const patient = { deadlineMs: 20_000, failureMode: 'closed' as const }

const server = await startRedis()
afterAll(() => server.close())

describe('processes whose wall clocks are wrong', () => {
  const rules: Readonly<Record<string, Rule>> = {
    gcra: { limit: LIMIT, window },
    window: { algorithm: 'fixed-window', limit: LIMIT, window },
    counter: { algorithm: 'sliding-window-counter', limit: LIMIT, window },
    log: { algorithm: 'sliding-window-log', limit: LIMIT, window },
    calendar: { algorithm: 'fixed-window', limit: LIMIT, window: { calendar } },
    bucket: { algorithm: 'token-bucket', capacity: LIMIT, refillPerSecond: 0.001 },
  }

  it('by five minutes, and then by an hour, decide as one at the time of the server', async () => {
    const opening = { target: server.url, options: { ...patient, prefix: 'skewed', denyCache: false as const }, rules }
    const skews = [0, 5 * MINUTE_MS, -5 * MINUTE_MS]
    const processes = await Promise.all(skews.map((skewMs) => LimiterProcess.start(opening, { skewMs })))
    try {
      for (const rule of Object.keys(rules)) {
        const third = { rule, key: 'key', calls: LIMIT / 3 / 3, perTurn: 3 }
        const first = await Promise.all(processes.map((one) => one.order('burst', third)))
        expect({ rule, ...total(first) }).toMatchObject({ rule, allowed: LIMIT / 3, denied: 0, failed: 0 })
        const looks = await Promise.all(processes.map((one) => one.order('peek', { rule, key: 'key' })))
        expect(new Set(looks.map(({ remaining }) => remaining))).toEqual(new Set([(2 * LIMIT) / 3]))
        // Looks at different instants round by a micro-unit at most, which the slowest rate here fills in a
        // millisecond, and to milliseconds on top of that.
        expect(
          Math.max(...looks.map(({ resetAt }) => resetAt)) - Math.min(...looks.map(({ resetAt }) => resetAt)),
        ).toBeLessThanOrEqual(2)
      }
      await processes[1]!.order('jump', { ms: 65 * MINUTE_MS })
      await processes[2]!.order('jump', { ms: -60 * MINUTE_MS })
      for (const rule of Object.keys(rules)) {
        const rest = { rule, key: 'key', calls: LIMIT, perTurn: 7 }
        const second = await Promise.all(processes.map((one) => one.order('burst', rest)))
        expect({ rule, ...total(second) }).toMatchObject({
          rule,
          allowed: (2 * LIMIT) / 3,
          denied: 3 * LIMIT - (2 * LIMIT) / 3,
          failed: 0,
        })
      }
    } finally {
      await Promise.all(processes.map((one) => one.close()))
    }
  })
})

const RATE = 10
const CAPACITY = 20

/** Each admits at most `CAPACITY` at once and `RATE` a second on the average. */
const flowing: Readonly<Record<string, Rule>> = {
  'token-bucket': { algorithm: 'token-bucket', capacity: CAPACITY, refillPerSecond: RATE },
  'leaky-bucket-meter': { algorithm: 'leaky-bucket-meter', capacity: CAPACITY, leakPerSecond: RATE },
  gcra: { limit: CAPACITY, window: '2s' },
  'fixed-window': { algorithm: 'fixed-window', limit: CAPACITY, window: '2s' },
  'sliding-window-counter': { algorithm: 'sliding-window-counter', limit: CAPACITY, window: '2s' },
  'sliding-window-log': { algorithm: 'sliding-window-log', limit: CAPACITY, window: '2s' },
  segments: { algorithm: 'sliding-window-log', segments: 10, limit: CAPACITY, window: '2s' },
  hybrid: { algorithm: 'hybrid', limit: 10, window: '2s', burst: { capacity: 10, refillPerSecond: 5 } },
}

describe('a new primary whose clock is two seconds behind', () => {
  it.each(Object.keys(flowing))('takes nothing back and gives nothing out twice: %s', async (rule) => {
    const ahead = new FakeClock()
    const behind = new FakeClock(START_MICROS - 2_000_000)
    const options = { ...patient, prefix: `behind-${rule}`, denyCache: false as const }
    const before = redisStore(server.url, { ...options, clock: ahead })
    const after = redisStore(server.url, { ...options, clock: behind })
    const old = createLimiter<string, 'async'>({ store: before, rules: flowing }).limiter(rule)
    const next = createLimiter<string, 'async'>({ store: after, rules: flowing }).limiter(rule)
    const ask = async (limiter: typeof old): Promise<number> => {
      const decisions = await Promise.all(Array.from({ length: CAPACITY }, () => limiter.check('key')))
      return decisions.filter(({ allowed }) => allowed).length
    }

    expect(await ask(old)).toBe(CAPACITY)
    const { resetAt } = await old.peek('key')
    // The new primary takes over: it is as if no time had passed, neither forward nor back.
    expect(await ask(next)).toBe(0)
    expect(await next.peek('key')).toMatchObject({ allowed: false, remaining: 0, resetAt })
    for (let elapsedMs = 0; elapsedMs < 1900; elapsedMs += 100) {
      behind.advance(100)
      expect(await ask(next)).toBe(0)
    }
    // When it has caught up, all goes on at the usual rate.
    behind.advance(100)
    let admitted = await ask(next)
    for (let elapsedMs = 0; elapsedMs < 6000; elapsedMs += 100) {
      behind.advance(100)
      admitted += await ask(next)
    }
    figure(`${rule}: nothing for 2 s, then ${admitted} in 6 s of a rate of ${RATE} a second`)
    // Six seconds at the rate, and what a window that has just begun may add; windows that slide may be more careful.
    expect(admitted).toBeLessThanOrEqual(6 * RATE + CAPACITY)
    expect(admitted).toBeGreaterThanOrEqual(3 * RATE)
    await before.close()
    await after.close()
  })

  it.each(Object.keys(flowing))(
    'asked in turns with the old one, admits no more than one clock would: %s',
    async (rule) => {
      const ahead = new FakeClock()
      const behind = new FakeClock(START_MICROS - 2_000_000)
      const clocks = [ahead, behind]
      const options = { ...patient, prefix: `turns-${rule}`, denyCache: false as const }
      const stores = clocks.map((clock) => redisStore(server.url, { ...options, clock }))
      const limiters = stores.map((store) => createLimiter<string, 'async'>({ store, rules: flowing }).limiter(rule))
      let admitted = 0
      const seconds = 6
      for (let step = 0; step < seconds * 10; step++) {
        for (const limiter of limiters) {
          for (let call = 0; call < 3; call++) if ((await limiter.check('key')).allowed) admitted++
        }
        for (const clock of clocks) clock.advance(100)
      }
      // What the algorithm itself may admit in that time, a fixed window at both its ends.
      expect(admitted).toBeLessThanOrEqual(
        CAPACITY + seconds * RATE + (rule.includes('window') || rule === 'hybrid' ? CAPACITY : 0),
      )
      expect(admitted).toBeGreaterThanOrEqual((seconds * RATE) / 2)
      await Promise.all(stores.map((store) => store.close()))
    },
  )
})
