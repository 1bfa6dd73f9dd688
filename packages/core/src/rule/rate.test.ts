import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { flowed, microsToFlow, type Rate, rateOverWindow, ratePart, ratePerSecond } from './rate.ts'

const rates: fc.Arbitrary<Rate> = fc.oneof(
  fc
    .tuple(fc.integer({ min: 1, max: 9e9 }), fc.integer({ min: 1, max: 3.16e15 }))
    .map(([limit, window]) => rateOverWindow(limit, window)),
  fc.double({ min: 1e-9, max: 9e9, noNaN: true }).map(ratePerSecond),
  fc
    .tuple(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 1000 }))
    .map(([units, seconds]) => ratePerSecond(units / seconds)),
)

describe('ratePerSecond', () => {
  it.each([
    [7, { units: 7, micros: 1 }],
    [1 / 3, { units: 1, micros: 3 }],
    [0.1, { units: 1, micros: 10 }],
    [2.5, { units: 5, micros: 2 }],
    [0.639217, { units: 639_217, micros: 1_000_000 }],
    [1e-9, { units: 1, micros: 1_000_000_000 }],
    [9e9, { units: 9e9, micros: 1 }],
    [1000 / 999, { units: 1000, micros: 999 }],
  ])('%d is the fraction %o', (perSecond, rate) => {
    expect(ratePerSecond(perSecond)).toEqual(rate)
  })

  it('is exact for every fraction of small numbers', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: 1, max: 1000 }), (units, seconds) => {
        const rate = ratePerSecond(units / seconds)
        expect(rate.units * seconds).toBe(units * rate.micros)
      }),
    )
  })

  it('is within a millionth of any rate', () => {
    fc.assert(
      fc.property(fc.double({ min: 1e-9, max: 9e9, noNaN: true }), (perSecond) => {
        const { units, micros } = ratePerSecond(perSecond)
        expect([Number.isSafeInteger(units), Number.isSafeInteger(micros)]).toEqual([true, true])
        expect(Math.abs(units / micros / perSecond - 1)).toBeLessThan(1e-6)
      }),
    )
  })
})

describe('rateOverWindow', () => {
  it.each([
    [100, 60_000_000, { units: 5, micros: 3 }],
    [1, 1, { units: 1_000_000, micros: 1 }],
    [7, 1_000_000, { units: 7, micros: 1 }],
    [1, 86_400_000_000, { units: 1, micros: 86_400 }],
  ])('%d in %d microseconds is %o', (limit, window, rate) => {
    expect(rateOverWindow(limit, window)).toEqual(rate)
  })

  it('is exact and in lowest terms', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9e9 }), fc.integer({ min: 1, max: 3.16e15 }), (limit, window) => {
        const { units, micros } = rateOverWindow(limit, window)
        expect(BigInt(units) * BigInt(window)).toBe(BigInt(limit) * 1_000_000n * BigInt(micros))
        expect(gcd(units, micros)).toBe(1)
      }),
    )
  })
})

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b)
}

describe('flowed and microsToFlow', () => {
  it('let 7 units flow in a second at 7 per second, and the last micro-unit not a microsecond earlier', () => {
    const rate = ratePerSecond(7)
    expect(flowed(rate, 1_000_000)).toBe(7_000_000)
    expect(flowed(rate, 999_999)).toBe(6_999_993)
    expect(microsToFlow(rate, 7_000_000)).toBe(1_000_000)
    expect(microsToFlow(rate, 6_999_994)).toBe(1_000_000)
    expect(microsToFlow(rate, 6_999_993)).toBe(999_999)
  })

  it('agree exactly with integers of any size wherever the numbers are whole', () => {
    fc.assert(
      fc.property(rates, fc.integer({ min: 0, max: 1e13 }), (rate, elapsed) => {
        const exact = (BigInt(elapsed) * BigInt(rate.units)) / BigInt(rate.micros)
        fc.pre(rate.units * rate.micros <= Number.MAX_SAFE_INTEGER && exact <= BigInt(Number.MAX_SAFE_INTEGER))
        expect(flowed(rate, elapsed)).toBe(Number(exact))
      }),
    )
  })

  it('are inverses: so long and no shorter', () => {
    fc.assert(
      fc.property(rates, fc.integer({ min: 1, max: 9e15 }), (rate, microUnits) => {
        const micros = microsToFlow(rate, microUnits)
        expect(Number.isSafeInteger(micros)).toBe(true)
        if (micros === Number.MAX_SAFE_INTEGER) return
        expect(flowed(rate, micros)).toBeGreaterThanOrEqual(microUnits)
        if (micros > 0) expect(flowed(rate, micros - 1)).toBeLessThan(microUnits)
      }),
      {
        // These did not end: beyond whole numbers there is no next microsecond to try.
        examples: [
          [ratePerSecond(1e-8), 7_777_777_777_000_000],
          [ratePerSecond(1e-9), 5_000_000_000_000_000],
          [rateOverWindow(1, 3.16e15), 9_000_000_000_000_000],
        ],
      },
    )
  })

  it('say 2^53 - 1 microseconds, and no more, for what takes longer than that', () => {
    expect(microsToFlow(ratePerSecond(1e-9), 9e15)).toBe(Number.MAX_SAFE_INTEGER)
    expect(microsToFlow(ratePerSecond(1e-9), 9_007_199_254_740_991)).toBe(Number.MAX_SAFE_INTEGER)
    expect(microsToFlow({ units: 1, micros: 1 }, Number.MAX_SAFE_INTEGER)).toBe(Number.MAX_SAFE_INTEGER)
  })

  it('need no time for nothing', () => {
    expect(microsToFlow(ratePerSecond(1), 0)).toBe(0)
    expect(microsToFlow(ratePerSecond(1), -5)).toBe(0)
    expect(flowed(ratePerSecond(1), 0)).toBe(0)
  })

  it('never flow back: more time, no less flow', () => {
    fc.assert(
      fc.property(rates, fc.nat({ max: Number.MAX_SAFE_INTEGER - 1 }), (rate, elapsed) => {
        expect(flowed(rate, elapsed + 1)).toBeGreaterThanOrEqual(flowed(rate, elapsed))
      }),
    )
  })
})

describe('ratePart', () => {
  it.each([
    [{ units: 7, micros: 1 }, 7, { units: 1, micros: 1 }],
    [{ units: 6, micros: 5 }, 4, { units: 3, micros: 10 }],
    [{ units: 1, micros: 3 }, 5, { units: 1, micros: 15 }],
    [{ units: 5, micros: 3 }, 1, { units: 5, micros: 3 }],
  ])('%j in %d parts', (rate, parts, expected) => {
    expect(ratePart(rate, parts)).toEqual(expected)
  })

  it('is rounded down where the exact fraction has no whole numbers: few units become one', () => {
    // 3 / (9e15 x 10): the denominator would be 9e16, a third of it is 3e16, and both are too large.
    expect(ratePart({ units: 3, micros: 8_000_000_000_000_000 }, 2)).toEqual({
      units: 1,
      micros: 5_333_333_333_333_334,
    })
    expect(ratePart({ units: 1, micros: 8_000_000_000_000_000 }, 10)).toEqual({
      units: 1,
      micros: Number.MAX_SAFE_INTEGER,
    })
  })

  it('all parts together are the rate, or less by what rounding takes', () => {
    fc.assert(
      fc.property(rates, fc.integer({ min: 1, max: 1000 }), (rate, parts) => {
        const part = ratePart(rate, parts)
        expect(Number.isSafeInteger(part.units) && Number.isSafeInteger(part.micros)).toBe(true)
        expect(part.units).toBeGreaterThan(0)
        const together = BigInt(part.units) * BigInt(parts) * BigInt(rate.micros)
        const whole = BigInt(rate.units) * BigInt(part.micros)
        if (part.micros === Number.MAX_SAFE_INTEGER) return
        expect(together <= whole).toBe(true)
        expect((whole - together) * 100_000_000n <= whole * BigInt(parts)).toBe(true)
      }),
    )
  })
})
