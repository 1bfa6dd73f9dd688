import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { backoffDelayMs } from './retry.ts'

const middle = (): number => 0.5

describe('backoffDelayMs', () => {
  it.each([
    { attempt: 0, random: 0.5, delayMs: 2000 },
    { attempt: 0, random: 0, delayMs: 1500 },
    { attempt: 0, random: 1, delayMs: 2500 },
    { attempt: 1, random: 0.5, delayMs: 4000 },
    { attempt: 2, random: 0.5, delayMs: 8000 },
    { attempt: 3, random: 0.5, delayMs: 16_000 },
    { attempt: 4, random: 0.5, delayMs: 32_000 },
    { attempt: 4, random: 0.25, delayMs: 28_000 },
    { attempt: 5, random: 0.5, delayMs: 60_000 },
    { attempt: 5, random: 0, delayMs: 48_000 },
    { attempt: 5, random: 1, delayMs: 60_000 },
    { attempt: 5000, random: 0, delayMs: 60_000 },
    { attempt: Number.MAX_SAFE_INTEGER, random: 1, delayMs: 60_000 },
  ])('by default waits $delayMs ms after attempt $attempt at random $random', ({ attempt, random, delayMs }) => {
    expect(backoffDelayMs(attempt, () => random)).toBe(delayMs)
  })

  it.each([
    { options: { baseMs: 100 }, attempt: 3, delayMs: 800 },
    { options: { capMs: 5000 }, attempt: 3, delayMs: 5000 },
    { options: { baseMs: 100, capMs: 100 }, attempt: 3, delayMs: 100 },
    { options: { baseMs: 0 }, attempt: 3, delayMs: 0 },
    { options: { baseMs: 0 }, attempt: 5000, delayMs: 0 },
    { options: { baseMs: 0, capMs: 0 }, attempt: 9, delayMs: 0 },
    { options: { baseMs: 0.5 }, attempt: 1, delayMs: 1 },
    { options: { baseMs: undefined, capMs: undefined }, attempt: 0, delayMs: 2000 },
  ])('waits $delayMs ms after attempt $attempt with $options', ({ options, attempt, delayMs }) => {
    expect(backoffDelayMs(attempt, middle, options)).toBe(delayMs)
  })

  it.each([
    { baseMs: -1 },
    { baseMs: Number.NaN },
    { baseMs: Number.POSITIVE_INFINITY },
    { capMs: -1 },
    { capMs: Number.NaN },
    { capMs: Number.POSITIVE_INFINITY },
    { capMs: 1999 },
    { baseMs: 60_001 },
    { baseMs: 200, capMs: 100 },
  ])('rejects %o', (options) => {
    expect(() => backoffDelayMs(0, middle, options)).toThrow(
      expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_OPTION' }),
    )
  })

  it.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY])('rejects attempt %s', (attempt) => {
    expect(() => backoffDelayMs(attempt, middle)).toThrow(/attempt = .*expected a whole number from 0/)
  })

  it.each([-0.1, 1.1, Number.NaN])('rejects %s as a random number', (value) => {
    expect(() => backoffDelayMs(0, () => value)).toThrow(
      expect.objectContaining({ code: 'SLUICE_RUNTIME_INVALID_PORT' }),
    )
  })

  it('stays within a quarter of the exponential and never exceeds the cap (property)', () => {
    const options = fc
      .tuple(fc.integer({ min: 0, max: 100_000 }), fc.integer({ min: 0, max: 1_000_000 }))
      .map(([baseMs, more]) => ({ baseMs, capMs: baseMs + more }))
    fc.assert(
      fc.property(
        options,
        fc.nat({ max: 6000 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (backoff, attempt, random) => {
          const delayMs = backoffDelayMs(attempt, () => random, backoff)
          let plainMs = backoff.baseMs
          for (let i = 0; i < attempt && plainMs > 0 && plainMs < backoff.capMs; i++) plainMs *= 2
          expect(delayMs).toBeGreaterThanOrEqual(Math.min(backoff.capMs, plainMs * 0.75))
          expect(delayMs).toBeLessThanOrEqual(Math.min(backoff.capMs, plainMs * 1.25))
        },
      ),
    )
  })
})
