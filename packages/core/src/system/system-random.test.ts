import { describe, expect, it } from 'vitest'
import { drawHolder } from '../store/batch.ts'
import { systemRandom } from './random.ts'

describe('the system’s chance', () => {
  it('is whole, 32 bits wide, and does not repeat over many draws', () => {
    const draws = Array.from({ length: 2000 }, () => systemRandom.nextUint32())
    expect(draws.filter((draw) => !(Number.isInteger(draw) && draw >= 0 && draw < 2 ** 32))).toEqual([])
    // Two of 2000 draws of 32 bits are the same once in two thousand runs; ten never are.
    expect(new Set(draws).size).toBeGreaterThan(1990)
    expect(draws.filter((draw) => draw >= 2 ** 31).length).toBeGreaterThan(800)
  })
})

describe('a holder', () => {
  it('is a whole number above 0, of 53 bits', () => {
    const constant = (value: number) => ({ nextUint32: () => value })
    expect(drawHolder(constant(0))).toBe(1)
    expect(drawHolder(constant(0xff_ff_ff_ff))).toBe(Number.MAX_SAFE_INTEGER)
    const holders = Array.from({ length: 1000 }, () => drawHolder(systemRandom))
    expect(new Set(holders).size).toBe(1000)
    expect(holders.filter((holder) => !(Number.isSafeInteger(holder) && holder > 0))).toEqual([])
  })
})
