import { describe, expect, it } from 'vitest'
import { seededRandom } from './seeded-random.ts'

function draw(seed: number, count: number): number[] {
  const random = seededRandom(seed)
  return Array.from({ length: count }, () => random.nextUint32())
}

describe('seeded chance', () => {
  it('repeats itself for the same seed, and not for another', () => {
    expect(draw(7, 100)).toEqual(draw(7, 100))
    expect(draw(7, 5)).not.toEqual(draw(8, 5))
    expect(new Set(Array.from({ length: 1000 }, (_, seed) => draw(seed, 1)[0])).size).toBe(1000)
  })

  it('is spread evenly over 32 bits', () => {
    const draws = draw(1, 64_000)
    expect(draws.filter((value) => !(Number.isInteger(value) && value >= 0 && value < 2 ** 32))).toEqual([])
    const counts = new Uint32Array(64)
    for (const value of draws) counts[value >>> 26] = counts[value >>> 26]! + 1
    const spread = counts.reduce((sum, count) => sum + (count - 1000) ** 2 / 1000, 0)
    expect(spread).toBeLessThan(130)
  })
})
