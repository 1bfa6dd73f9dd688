import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { evenShares } from './test-bed.ts'

describe('evenShares', () => {
  it('property: shares add up to the total and differ by 1 at most', () => {
    fc.assert(
      fc.property(fc.nat(1_000_000), fc.integer({ min: 1, max: 64 }), (total, parts) => {
        const shares = evenShares(total, parts)
        expect(shares).toHaveLength(parts)
        expect(shares.reduce((sum, share) => sum + share, 0)).toBe(total)
        expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1)
      }),
    )
  })
})
