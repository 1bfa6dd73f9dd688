import { seededRandom } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { reconnectDelayMs } from './reconnect-delay.ts'

describe('the time until the next try to connect', () => {
  it.each([
    [0, 50],
    [1, 100],
    [2, 200],
    [3, 400],
    [4, 500],
    [1_000_000, 500],
  ])('after %i failures is %i ms, a quarter less or more', (failures, delayMs) => {
    expect(reconnectDelayMs(failures, { nextUint32: () => 0 })).toBe(delayMs * 0.75)
    expect(reconnectDelayMs(failures, { nextUint32: () => 2 ** 31 })).toBe(delayMs)
    expect(reconnectDelayMs(failures, { nextUint32: () => 2 ** 32 - 1 })).toBeCloseTo(delayMs * 1.25, 6)
  })

  it('differs between clients', () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(20), (seed, failures) => {
        const [one, other] = [
          reconnectDelayMs(failures, seededRandom(seed)),
          reconnectDelayMs(failures, seededRandom(seed + 1)),
        ]
        expect(one).not.toBe(other)
      }),
    )
  })
})
