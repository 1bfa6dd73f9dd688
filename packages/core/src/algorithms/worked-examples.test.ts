import { FakeClock } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { createLimiter } from '../limiter/create-any-limiter.ts'
import type { Limiter } from '../limiter/limiter.ts'
import type { Rule } from '../rule/rule.ts'
import { memoryStore } from '../store/memory/memory-store.ts'

// Textbook examples of the algorithms, with their own numbers. The clock starts at a full minute.

const MINUTE_MS = 60_000

function start(rule: Rule): { readonly limiter: Limiter<'sync'>; readonly clock: FakeClock } {
  const clock = new FakeClock()
  const limiter = createLimiter({ ...rule, store: memoryStore({ clock }), clock })
  return { limiter, clock }
}

/** How many of `calls` calls are admitted. */
function admitted(limiter: Limiter<'sync'>, calls: number): number {
  let count = 0
  for (let call = 0; call < calls; call++) if (limiter.tryAcquire('key')) count++
  return count
}

describe('a sliding window counter of 100 a minute', () => {
  const rule: Rule = { algorithm: 'sliding-window-counter', limit: 100, window: '1m' }

  it('counts 66 of the 88 calls of the minute before, a quarter into this one', () => {
    const { limiter, clock } = start(rule)
    expect(admitted(limiter, 88)).toBe(88)
    clock.advance(MINUTE_MS + 15_000)
    expect(limiter.peek('key').remaining).toBe(100 - 66)
  })

  it('after 90 calls admits 25 in the first 10 seconds, 40 in 20, 55 in 30', () => {
    const { limiter, clock } = start(rule)
    expect(admitted(limiter, 90)).toBe(90)
    clock.advance(MINUTE_MS + 10_000)
    // Five sixths of 90 are 75. Of 60 calls, 25 are admitted and 35 dropped.
    expect(limiter.peek('key').remaining).toBe(100 - 75)
    expect(admitted(limiter, 60)).toBe(25)
    clock.advance(10_000)
    expect(25 + admitted(limiter, 60)).toBe(40)
    clock.advance(10_000)
    expect(40 + admitted(limiter, 60)).toBe(55)
  })
})

describe('a leaky bucket of 10,000 that lets out 10 a second', () => {
  it.each<[string, Rule]>([
    ['queue', { algorithm: 'leaky-bucket-queue', capacity: 10_000, ratePerSecond: 10 }],
    ['meter', { algorithm: 'leaky-bucket-meter', capacity: 10_000, leakPerSecond: 10 }],
  ])('as a %s, 3 seconds after 5,000 mails, accepts 5,030 of 20,000 and drops 14,970', (_, rule) => {
    const { limiter, clock } = start(rule)
    expect(admitted(limiter, 5000)).toBe(5000)
    clock.advance(3000)
    expect(limiter.peek('key').remaining).toBe(10_000 - 4970)
    const accepted = admitted(limiter, 20_000)
    expect([accepted, 20_000 - accepted]).toEqual([5030, 14_970])
  })
})

describe('token buckets of two customers', () => {
  /** A bucket that has been emptied, and refilled for 5 seconds since. */
  function refilled(capacity: number, refillPerSecond: number): ReturnType<typeof start> {
    const { limiter, clock } = start({ algorithm: 'token-bucket', capacity, refillPerSecond })
    expect(admitted(limiter, capacity)).toBe(capacity)
    clock.advance(5000)
    return { limiter, clock }
  }

  it('A, who pays, has 50 tokens, asks 12 questions and keeps 38; the bucket fills by 10 up to 100', () => {
    const { limiter, clock } = refilled(100, 10)
    const left = (): number => limiter.peek('key').remaining
    expect(left()).toBe(50)
    expect([admitted(limiter, 12), left()]).toEqual([12, 38])
    const growth: number[] = []
    for (let second = 0; second < 8; second++) {
      clock.advance(1000)
      growth.push(left())
    }
    // 98 and 10 are 100: the bucket holds no more.
    expect(growth).toEqual([48, 58, 68, 78, 88, 98, 100, 100])
  })

  it('B, who does not, has 5 tokens and asks 12 questions: 5 are answered, 7 dropped; then 1, 2', () => {
    const { limiter, clock } = refilled(10, 1)
    expect(limiter.peek('key').remaining).toBe(5)
    const answered = admitted(limiter, 12)
    expect([answered, 12 - answered, limiter.peek('key').remaining]).toEqual([5, 7, 0])
    clock.advance(1000)
    expect(limiter.peek('key').remaining).toBe(1)
    clock.advance(1000)
    expect(limiter.peek('key').remaining).toBe(2)
  })
})

it('a fixed window of 100 a minute admits 200 within 10 seconds around its boundary', () => {
  const { limiter, clock } = start({ algorithm: 'fixed-window', limit: 100, window: '1m' })
  clock.advance(55_000)
  expect(admitted(limiter, 200)).toBe(100)
  clock.advance(5000)
  expect(admitted(limiter, 200)).toBe(100)
})
