import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SlidingCounter } from './sliding-counter.ts'

function counterAt(atMs: number, windowMs: number) {
  const clock = { atMs }
  return { clock, counter: new SlidingCounter({ windowMs, nowMs: () => clock.atMs }) }
}

describe('sum', () => {
  it('counts the current second and those before it', () => {
    const { clock, counter } = counterAt(0, 5000)
    const steps = [
      { atMs: 0, add: 1, sums: { 1000: 1, 2000: 1, 5000: 1 } },
      { atMs: 999, add: 2, sums: { 1000: 3, 2000: 3, 5000: 3 } },
      { atMs: 1000, add: 10, sums: { 1000: 10, 2000: 13, 5000: 13 } },
      { atMs: 2500, add: 0, sums: { 1000: 0, 2000: 10, 5000: 13 } },
      { atMs: 4999, add: 100, sums: { 1000: 100, 2000: 100, 5000: 113 } },
      { atMs: 5000, add: 0, sums: { 1000: 0, 2000: 100, 5000: 110 } },
      { atMs: 6000, add: 0, sums: { 1000: 0, 2000: 0, 5000: 100 } },
      { atMs: 9000, add: 0, sums: { 1000: 0, 2000: 0, 5000: 0 } },
    ]
    for (const { atMs, add, sums } of steps) {
      clock.atMs = atMs
      counter.add(add)
      for (const [windowMs, sum] of Object.entries(sums)) {
        expect(counter.sum(Number(windowMs)), `${windowMs} ms at ${atMs}`).toBe(sum)
      }
      expect(counter.sum()).toBe(sums[5000])
    }
  })

  it('forgets everything in an idle time longer than the window', () => {
    const { clock, counter } = counterAt(0, 3000)
    for (const idleMs of [3000, 4000, 6000, 3_600_000, 3000 * 1_000_000]) {
      counter.add(7)
      clock.atMs += idleMs
      expect(counter.sum(), `after ${idleMs}`).toBe(0)
      counter.add()
      expect(counter.sum(), `after ${idleMs}`).toBe(1)
      clock.atMs += 3000
    }
  })

  it('lets time stand still while the clock is behind, and starts over when it is a window behind', () => {
    const { clock, counter } = counterAt(100_000, 5000)
    const steps = [
      { atMs: 100_500, add: 1, all: 1, lastSecond: 1 },
      { atMs: 99_000, add: 1, all: 2, lastSecond: 2 },
      { atMs: 95_501, add: 1, all: 3, lastSecond: 3 },
      { atMs: 100_999, add: 1, all: 4, lastSecond: 4 },
      { atMs: 101_000, add: 1, all: 5, lastSecond: 1 },
      { atMs: 96_000, add: 1, all: 1, lastSecond: 1 },
      { atMs: 97_000, add: 1, all: 2, lastSecond: 1 },
      { atMs: 101_000, add: 0, all: 1, lastSecond: 0 },
    ]
    for (const { atMs, add, all, lastSecond } of steps) {
      clock.atMs = atMs
      counter.add(add)
      expect([counter.sum(), counter.sum(1000)], `at ${atMs}`).toEqual([all, lastSecond])
    }
  })

  it('is that of a list of all times, whatever the clock does (property)', () => {
    const step = fc.record({
      moveMs: fc.oneof(
        { weight: 6, arbitrary: fc.integer({ min: 0, max: 1500 }) },
        { weight: 1, arbitrary: fc.integer({ min: -9000, max: 30_000 }) },
      ),
      amount: fc.nat({ max: 5 }),
      windowSeconds: fc.integer({ min: 1, max: 6 }),
    })
    // Starting below zero shows that the ring does not depend on the sign of the time.
    const startMs = fc.integer({ min: -20_000, max: 1_700_000_000_000 })
    fc.assert(
      fc.property(startMs, fc.array(step, { maxLength: 60 }), (atMs, steps) => {
        const { clock, counter } = counterAt(atMs, 6000)
        let times: { atMs: number; amount: number }[] = []
        let latestMs = atMs
        for (const { moveMs, amount, windowSeconds } of steps) {
          clock.atMs += moveMs
          if (clock.atMs <= latestMs - 6000) {
            times = []
            latestMs = clock.atMs
          }
          latestMs = Math.max(latestMs, clock.atMs)
          counter.add(amount)
          times.push({ atMs: latestMs, amount })
          const sum = counter.sum(windowSeconds * 1000)
          const since = (ageMs: number): number =>
            times.filter((time) => latestMs - time.atMs < ageMs).reduce((total, time) => total + time.amount, 0)
          const oldestSecond = Math.floor(latestMs / 1000) - windowSeconds + 1
          const exact = times.filter((time) => Math.floor(time.atMs / 1000) >= oldestSecond)
          expect(sum).toBe(exact.reduce((total, time) => total + time.amount, 0))
          expect(sum).toBeLessThanOrEqual(since(windowSeconds * 1000))
          expect(sum).toBeGreaterThanOrEqual(since((windowSeconds - 1) * 1000 + 1))
        }
      }),
    )
  })
})

describe('ratePerSecond', () => {
  it('tells a constant rate as it is, at any moment of a second', () => {
    for (const offsetMs of [0, 250, 990]) {
      const run = counterAt(0, 10_000)
      for (run.clock.atMs = 0; run.clock.atMs < 20_000 + offsetMs; run.clock.atMs += 10) run.counter.add()
      expect(run.counter.ratePerSecond(), `at ${offsetMs}`).toBe(100)
      expect(run.counter.ratePerSecond(2000), `at ${offsetMs}`).toBe(100)
    }
  })

  it.each([
    { name: 'nothing yet', adds: [], atMs: 5000, rate: 0 },
    { name: 'the first event at once', adds: [0], atMs: 0, rate: 1 },
    { name: 'a second not yet over', adds: [0, 100, 200], atMs: 300, rate: 3 },
    { name: 'two seconds of life', adds: [0, 500, 1000, 1500], atMs: 2000, rate: 2 },
    { name: 'an age beyond the window', adds: [0, 8000, 9000], atMs: 10_000, rate: 0.5 },
  ])('with $name is $rate', ({ adds, atMs, rate }) => {
    const { clock, counter } = counterAt(0, 5000)
    for (const addMs of adds) {
      clock.atMs = addMs
      counter.add()
    }
    clock.atMs = atMs
    expect(counter.ratePerSecond()).toBe(rate)
  })

  it('starts over with the counter when the clock goes back a window', () => {
    const { clock, counter } = counterAt(100_000, 5000)
    counter.add(50)
    clock.atMs = 10_000
    counter.add(4)
    clock.atMs = 12_000
    expect(counter.ratePerSecond()).toBe(2)
  })
})

describe('SlidingCounter', () => {
  it.each([0, -1000, 999, 1500, 86_401_000, Number.NaN])('rejects a window of %s ms', (windowMs) => {
    expect(() => counterAt(0, windowMs)).toThrow(expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_OPTION' }))
  })

  it.each([0, -1000, 500, 1500, 6000, Number.NaN])('of 5000 ms rejects a window of %s ms', (windowMs) => {
    const { counter } = counterAt(0, 5000)
    const code = 'SLUICE_RUNTIME_INVALID_OPTION'
    expect(() => counter.sum(windowMs)).toThrow(expect.objectContaining({ code }))
    expect(() => counter.ratePerSecond(windowMs)).toThrow(expect.objectContaining({ code }))
  })

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY])('does not add %s', (amount) => {
    const { counter } = counterAt(0, 5000)
    expect(() => counter.add(amount)).toThrow(expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_OPTION' }))
    expect(counter.sum()).toBe(0)
  })

  it('rejects a clock that gives no number', () => {
    expect(() => counterAt(Number.NaN, 5000)).toThrow(expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_PORT' }))
    const { clock, counter } = counterAt(0, 5000)
    clock.atMs = Number.POSITIVE_INFINITY
    expect(() => counter.add()).toThrow(expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_PORT' }))
  })
})
