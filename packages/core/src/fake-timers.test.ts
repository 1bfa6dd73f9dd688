import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createLimiter } from './limiter/create-any-limiter.ts'
import { systemClock } from './system/clock-and-timers.ts'

// The fake timers of test frameworks move the library's own clock and timers, with nothing passed in.

const START = '2031-05-06T07:08:09.000Z'

/** What Jest replaces besides what vitest does; `nextTick` cannot be replaced in the processes that run these tests. */
const AS_JEST = ['Date', 'performance', 'setTimeout', 'clearTimeout', 'setImmediate', 'queueMicrotask'] as const

afterEach(() => void vi.useRealTimers())

describe.each([
  ['vitest', undefined],
  ['Jest', [...AS_JEST]],
])('fake timers as %s installs them', (_framework, toFake) => {
  beforeEach(() => {
    vi.useFakeTimers({ now: new Date(START), ...(toFake === undefined ? {} : { toFake }) })
  })

  it('move limits', () => {
    const limiter = createLimiter({ algorithm: 'fixed-window', limit: 2, window: '1m' })
    expect(limiter.check('key', { cost: 2 })).toMatchObject({ allowed: true, resetAt: Date.parse(START) + 51_000 })
    vi.advanceTimersByTime(50_999)
    expect(limiter.tryAcquire('key')).toBe(false)
    vi.advanceTimersByTime(1)
    expect(limiter.tryAcquire('key')).toBe(true)
  })

  it('move limits in the middle of a tight loop', () => {
    const limiter = createLimiter({ algorithm: 'fixed-window', limit: 100, window: '1m' })
    for (let round = 0; round < 3; round++) {
      const admitted = Array.from({ length: 105 }, () => limiter.tryAcquire('key'))
      expect(admitted.filter(Boolean)).toHaveLength(100)
      vi.advanceTimersByTime(60_000)
    }
  })

  it('end the waiting of acquire', async () => {
    const limiter = createLimiter({ limit: 2, window: '1s' })
    limiter.check('key', { cost: 2 })
    const waiting = limiter.acquire('key')
    await vi.advanceTimersByTimeAsync(499)
    expect(vi.getTimerCount()).toBe(1)
    await vi.advanceTimersByTimeAsync(1)
    expect((await waiting).allowed).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
    const late = await limiter.acquire('key', { maxWait: 10 })
    expect(late).toMatchObject({ allowed: false, retryAfterMs: 500 })
  })

  it('set back hand no unit out twice, and a new limiter begins at the time that was set', () => {
    const rule = { algorithm: 'fixed-window', limit: 1, window: '1m' } as const
    const limiter = createLimiter(rule)
    expect(limiter.tryAcquire('key')).toBe(true)
    vi.setSystemTime(new Date('2001-01-01'))
    expect(limiter.tryAcquire('key')).toBe(false)
    expect(createLimiter(rule).check('key')).toMatchObject({ allowed: true, resetAt: Date.UTC(2001, 0, 1, 0, 1) })
  })

  it('move a copy of the library that is loaded while they are installed', async () => {
    vi.resetModules()
    const { createLimiter: createLoaded } = await import('./limiter/create-any-limiter.ts')
    expect(createLoaded).not.toBe(createLimiter)
    const limiter = createLoaded({ limit: 100, window: '1m' })
    for (let call = 0; call < 105; call++) limiter.tryAcquire('key')
    vi.advanceTimersByTime(60_000)
    expect(limiter.peek('key').remaining).toBe(100)
  })
})

it('a spy on Date.now moves limits', () => {
  const nowMs = Math.ceil(systemClock.nowMicros() / 1000) + 60_000
  const limiter = createLimiter({ limit: 1, window: '1m' })
  const now = vi.spyOn(Date, 'now').mockReturnValue(nowMs)
  expect([limiter.tryAcquire('key'), limiter.tryAcquire('key')]).toEqual([true, false])
  now.mockReturnValue(nowMs + 60_000)
  expect(limiter.tryAcquire('key')).toBe(true)
  now.mockRestore()
})
