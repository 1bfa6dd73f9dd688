import { memoryStore, sharedMemoryStore } from '@sluice/core'
import { FakeClock } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ThrottleAnswer } from './cl-throttle.ts'
import { AdHocLimits } from './cl-throttle.ts'

const MAX_AD_HOC_LIMITS = 20

/** The algorithm of redis-cell in its own terms: one theoretical arrival time for each key, in nanoseconds. */
class RedisCell {
  #arrivalNanos: bigint | undefined

  throttle(
    nowMicros: number,
    { maxBurst, count, periodSeconds, quantity }: Readonly<Record<string, number>>,
  ): ThrottleAnswer {
    const now = BigInt(nowMicros) * 1000n
    const interval = (BigInt(periodSeconds!) * 1_000_000_000n) / BigInt(count!)
    const tolerance = interval * BigInt(maxBurst! + 1)
    const increment = interval * BigInt(quantity!)
    const arrival = this.#arrivalNanos === undefined || this.#arrivalNanos < now ? now : this.#arrivalNanos
    const next = arrival + increment
    const lateBy = next - tolerance - now
    const allowed = lateBy <= 0n
    if (allowed) this.#arrivalNanos = next
    const ttl = (allowed ? next : arrival) - now
    return {
      allowed,
      limit: maxBurst! + 1,
      remaining: Number((tolerance - ttl) / interval),
      retryAfterSeconds: allowed || increment > tolerance ? -1 : seconds(lateBy),
      resetAfterSeconds: seconds(ttl),
      failure: undefined,
    }
  }
}

function seconds(nanos: bigint): number {
  return Number((nanos + 999_999_999n) / 1_000_000_000n)
}

const LIMIT = { maxBurst: 15, count: 30, periodSeconds: 60, tenant: undefined }

describe('CL.THROTTLE', () => {
  it('answers like redis-cell, call by call', () => {
    const numbers = fc.record({
      maxBurst: fc.integer({ min: 0, max: 20 }),
      // Whole microseconds for each unit: redis-cell cuts the rest off, and this does not.
      count: fc.constantFrom(1, 2, 4, 5, 8, 10, 20, 25, 50, 100, 1000),
      periodSeconds: fc.integer({ min: 1, max: 100 }),
    })
    const call = fc.record({
      quantity: fc.oneof(fc.constant(1), fc.integer({ min: 0, max: 25 })),
      afterMicros: fc.oneof(
        fc.constant(0),
        fc.integer({ min: 0, max: 5_000_000 }),
        fc.integer({ max: 200_000_000, min: 0 }),
      ),
    })
    fc.assert(
      fc.property(numbers, fc.array(call, { minLength: 1, maxLength: 40 }), (limit, calls) => {
        const clock = new FakeClock()
        const limits = new AdHocLimits(memoryStore({ clock, maxKeys: 64 }), MAX_AD_HOC_LIMITS)
        const model = new RedisCell()
        for (const { quantity, afterMicros } of calls) {
          clock.advance(afterMicros)
          const request = { ...limit, quantity }
          expect(limits.throttle({ ...request, key: 'k', tenant: undefined })).toEqual(
            model.throttle(clock.nowMicros(), request),
          )
        }
      }),
      { numRuns: 500 },
    )
  })

  it('counts each key, each combination of numbers and each tenant on its own', () => {
    const limits = new AdHocLimits(memoryStore({ clock: new FakeClock() }), MAX_AD_HOC_LIMITS)
    const remaining = (more: object): number =>
      (limits.throttle({ ...LIMIT, key: 'k', quantity: 1, ...more }) as ThrottleAnswer).remaining
    expect(remaining({})).toBe(15)
    expect(remaining({})).toBe(14)
    expect(remaining({ key: 'other' })).toBe(15)
    expect(remaining({ count: 31 })).toBe(15)
    expect(remaining({ tenant: 'a' })).toBe(15)
    expect(remaining({ tenant: 'b' })).toBe(15)
    expect(remaining({ tenant: 'a' })).toBe(14)
    expect(limits.size).toBe(3)
  })

  it('is shared by threads to the unit', () => {
    const clock = new FakeClock()
    const store = sharedMemoryStore({ clock, maxKeys: 1000 })
    const [one, other] = [new AdHocLimits(store, MAX_AD_HOC_LIMITS), new AdHocLimits(store, MAX_AD_HOC_LIMITS)]
    const taken = Array.from({ length: 20 }, (_, index) =>
      (index % 2 === 0 ? one : other).throttle({ ...LIMIT, key: 'k', quantity: 1 }),
    )
    expect(taken.filter((answer) => (answer as ThrottleAnswer | undefined) !== undefined)).toHaveLength(20)
    expect(one.throttle({ ...LIMIT, key: 'k', quantity: 1 })).toMatchObject({ allowed: false, remaining: 0 })
  })

  it('knows a bounded number of limits, and those that it knows still count', () => {
    const limits = new AdHocLimits(memoryStore({ clock: new FakeClock() }), MAX_AD_HOC_LIMITS)
    const ask = (count: number): unknown => limits.throttle({ ...LIMIT, count, key: 'k', quantity: 1 })
    for (let count = 1; count <= MAX_AD_HOC_LIMITS; count++) expect(ask(count)).toBeDefined()
    expect(ask(MAX_AD_HOC_LIMITS + 1)).toBeUndefined()
    expect(ask(5)).toMatchObject({ allowed: true, remaining: 14 })
    expect(limits.size).toBe(MAX_AD_HOC_LIMITS)
  })
})
