import { describe, expect, it } from 'vitest'
import { Backoff } from './retry-backoff.ts'

const LARGEST = 2 ** 32 - 1

function waits(draw: number, count: number): number[] {
  const backoff = new Backoff({ firstMs: 100, longestMs: 1000, random: { nextUint32: () => draw } })
  return Array.from({ length: count }, () => Math.round(backoff.nextMs()))
}

describe('Backoff', () => {
  it.each([
    { draw: 0, expected: [75, 150, 300, 600, 1000, 1000] },
    { draw: 2 ** 31, expected: [100, 200, 400, 800, 1000, 1000] },
    { draw: LARGEST, expected: [125, 250, 500, 1000, 1000, 1000] },
  ])('doubles the wait and never exceeds the longest, at random number $draw', ({ draw, expected }) => {
    expect(waits(draw, 6)).toEqual(expected)
  })

  it('starts again after a success', () => {
    const backoff = new Backoff({ firstMs: 100, longestMs: 1000, random: { nextUint32: () => 2 ** 31 } })
    backoff.nextMs()
    backoff.nextMs()
    backoff.reset()
    expect(backoff.nextMs()).toBe(100)
  })
})
