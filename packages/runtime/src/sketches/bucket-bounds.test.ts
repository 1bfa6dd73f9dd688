import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { bucketOf, bucketQuantile, requireBounds } from './bucket-bounds.ts'

describe('bucketOf', () => {
  it('is the first bucket whose bound is not below the value (property)', () => {
    const bounds = fc.uniqueArray(fc.integer({ min: -50, max: 50 }), { minLength: 1, maxLength: 20 })
    fc.assert(
      fc.property(bounds, fc.integer({ min: -60, max: 60 }), (unsorted, value) => {
        const sorted = unsorted.toSorted((one, other) => one - other)
        const first = sorted.findIndex((bound) => value <= bound)
        expect(bucketOf(requireBounds(sorted), value)).toBe(first < 0 ? sorted.length : first)
      }),
    )
  })
})

describe('bucketQuantile', () => {
  it.each([
    { counts: [0, 0, 0], quantile: 0.5, expected: undefined },
    { counts: [4, 0, 0], quantile: 0.5, expected: 5 },
    { counts: [4, 0, 0], quantile: 1, expected: 10 },
    { counts: [4, 0, 0], quantile: 0, expected: 2.5 },
    { counts: [0, 10, 0], quantile: 0.99, expected: 20 },
    { counts: [5, 5, 0], quantile: 0.6, expected: 12 },
    { counts: [99, 0, 1], quantile: 0.99, expected: 10 },
    { counts: [98, 0, 2], quantile: 0.99, expected: 20 },
  ])('$quantile of $counts in buckets to 10 and 20 is $expected', ({ counts, quantile, expected }) => {
    expect(bucketQuantile([10, 20], counts, quantile)).toBe(expected)
  })

  it('begins a first bucket of negative numbers at its bound', () => {
    expect(bucketQuantile([-10, 20], [2, 0, 0], 0.5)).toBe(-10)
  })

  it('is in the bucket of the exact quantile (property)', () => {
    const values = fc.array(fc.double({ min: 0, max: 120, noNaN: true }), { minLength: 1, maxLength: 200 })
    const quantile = fc.oneof(fc.double({ min: 0, max: 1, noNaN: true }), fc.constantFrom(0, 0.5, 0.9, 0.99, 0.999, 1))
    fc.assert(
      fc.property(values, quantile, (observed, share) => {
        const bounds = requireBounds([1, 2, 5, 10, 50, 100])
        const counts = new Float64Array(bounds.length + 1)
        for (const value of observed) counts[bucketOf(bounds, value)]!++
        const sorted = observed.toSorted((one, other) => one - other)
        const exact = sorted[Math.max(1, Math.ceil(share * sorted.length)) - 1]!
        const estimate = bucketQuantile(bounds, counts, share)!
        expect(bucketOf(bounds, estimate)).toBe(Math.min(bucketOf(bounds, exact), bounds.length - 1))
      }),
    )
  })

  it('rejects shares beyond 0 and 1, and counts of other bounds', () => {
    const invalid = expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_OPTION' })
    for (const quantile of [-0.1, 1.1, 99, Number.NaN])
      expect(() => bucketQuantile([1], [1, 1], quantile)).toThrow(invalid)
    expect(() => bucketQuantile([1], [1], 0.5)).toThrow(invalid)
  })
})
