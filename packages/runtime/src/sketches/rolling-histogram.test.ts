import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bucketOf } from './bucket-bounds.ts'
import { RollingHistogram } from './rolling-histogram.ts'

const bounds = [1, 2, 5, 10, 20, 50]

function histogramAt(atMs: number, windowMs = 300_000) {
  const clock = { atMs }
  return { clock, latency: new RollingHistogram({ windowMs, bounds, nowMs: () => clock.atMs }) }
}

describe('RollingHistogram', () => {
  it('tells the p99 of the window asked for', () => {
    const { clock, latency } = histogramAt(0)
    for (clock.atMs = 0; clock.atMs < 240_000; clock.atMs += 100) latency.observe(2)
    expect(latency.quantile(0.99)).toBeCloseTo(1.99, 5)
    for (; clock.atMs < 300_000; clock.atMs += 100) latency.observe(15)
    clock.atMs = 299_999
    expect(latency.quantile(0.99, 60_000)).toBeCloseTo(19.9, 5)
    expect(latency.quantile(0.5, 300_000)).toBeLessThanOrEqual(2)
    expect(latency.quantile(0.99)).toBeGreaterThan(10)
    clock.atMs = 600_000
    expect(latency.quantile(0.99)).toBeUndefined()
  })

  it('counts what a list of all observations would (property)', () => {
    const step = fc.record({
      moveMs: fc.oneof(fc.integer({ min: 0, max: 1500 }), fc.integer({ min: 0, max: 9000 })),
      value: fc.integer({ min: 0, max: 60 }),
      windowSeconds: fc.integer({ min: 1, max: 5 }),
    })
    fc.assert(
      fc.property(fc.integer({ min: -9000, max: 9000 }), fc.array(step, { maxLength: 40 }), (atMs, steps) => {
        const { clock, latency } = histogramAt(atMs, 5000)
        const all: { second: number; value: number }[] = []
        for (const { moveMs, value, windowSeconds } of steps) {
          clock.atMs += moveMs
          const second = Math.floor(clock.atMs / 1000)
          latency.observe(value)
          all.push({ second, value })
          const expected = bounds.map(() => 0).concat(0)
          for (const seen of all) {
            if (seen.second > second - windowSeconds) expected[bucketOf(Float64Array.from(bounds), seen.value)]!++
          }
          expect(Array.from(latency.counts(windowSeconds * 1000))).toEqual(expected)
        }
      }),
    )
  })

  it('rejects values, bounds and windows that cannot be', () => {
    const { latency } = histogramAt(0, 5000)
    const invalid = expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_OPTION' })
    for (const value of [-1, Number.NaN, Number.POSITIVE_INFINITY])
      expect(() => latency.observe(value)).toThrow(invalid)
    for (const windowMs of [0, 500, 6000]) expect(() => latency.counts(windowMs)).toThrow(invalid)
    expect(() => latency.quantile(99)).toThrow(invalid)
    expect(() => new RollingHistogram({ windowMs: 1000, bounds: [], nowMs: () => 0 })).toThrow(invalid)
    expect(Array.from(latency.counts())).toEqual([0, 0, 0, 0, 0, 0, 0])
  })
})
