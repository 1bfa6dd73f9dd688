import { seededRandom } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { reconnectDelayMs } from './reconnect-delay.ts'

const LARGEST = 2 ** 32 - 1

describe('the time until the next connection attempt', () => {
  it.each([
    [0, 37.5, 50, 62.5],
    [1, 75, 100, 125],
    [2, 150, 200, 250],
    [3, 300, 400, 500],
    [4, 500, 500, 500],
    [1_000_000, 500, 500, 500],
  ])('after %i failures is %d to %d to %d ms', (failures, least, middle, most) => {
    expect(reconnectDelayMs(failures, { nextUint32: () => 0 })).toBe(least)
    expect(reconnectDelayMs(failures, { nextUint32: () => 2 ** 31 })).toBe(middle)
    expect(reconnectDelayMs(failures, { nextUint32: () => LARGEST })).toBeCloseTo(most, 6)
  })

  it('differs between clients until it reaches the longest', () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(2), (seed, failures) => {
        const [one, other] = [
          reconnectDelayMs(failures, seededRandom(seed)),
          reconnectDelayMs(failures, seededRandom(seed + 1)),
        ]
        expect(one).not.toBe(other)
      }),
    )
  })
})
