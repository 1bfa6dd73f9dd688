import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createVerdict, type Verdict } from '../../algorithms/algorithm.ts'
import type { Fingerprint } from '../../fingerprint.ts'
import { NO_SLOT, PackedTable } from './packed-table.ts'

/**
 * Fingerprints that meet as often as can be: few homes, few differences. One of zeros only would be an empty slot's.
 */
const fingerprints = fc
  .record({
    word0: fc.constantFrom(0, 1, 2, 62, 63, 64, 127, -1),
    word1: fc.integer({ min: 1, max: 3 }),
    word2: fc.nat(2),
  })
  .map((words) => words as unknown as Fingerprint)

function verdictOf(values: readonly number[], expirySeconds = 1000): Verdict {
  return { ...createVerdict(), remaining: 5, freshAt: (expirySeconds - 1) * 1e6, next: [...values] }
}

const nameOf = ({ word0, word1, word2 }: Fingerprint): string => `${word0} ${word1} ${word2}`

/** The states that are found under the fingerprints of these operations. */
function contentsOf(
  table: PackedTable,
  width: number,
  operations: readonly { readonly fingerprint: Fingerprint }[],
): Map<string, number[]> {
  const found = new Map<string, number[]>()
  for (const { fingerprint } of operations) {
    const state = Array.from({ length: width }, () => 0)
    if (table.load(fingerprint, state) !== NO_SLOT) found.set(nameOf(fingerprint), state)
  }
  return found
}

describe('a packed table', () => {
  it.each([2, 4])('finds what was written and not removed, with states of %d values', (width) => {
    const operation = fc.record({ fingerprint: fingerprints, removes: fc.boolean(), value: fc.nat() })
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 120 }), (operations) => {
        const table = new PackedTable(width, 1000)
        const known = new Map<string, number[]>()
        for (const { fingerprint, removes, value } of operations) {
          const slot = table.find(fingerprint)
          expect(slot === NO_SLOT).toBe(!known.has(nameOf(fingerprint)))
          if (removes && slot !== NO_SLOT) table.remove(slot)
          if (removes) known.delete(nameOf(fingerprint))
          if (removes) continue
          const state = Array.from({ length: width }, (_, index) => value + index)
          table.write(slot === NO_SLOT ? table.insert(fingerprint, 0) : slot, verdictOf(state), 10)
          known.set(nameOf(fingerprint), state)
        }
        expect(table.size).toBe(known.size)
        expect(contentsOf(table, width, operations)).toEqual(known)
      }),
      { numRuns: 300 },
    )
  })

  it('keeps everything as it grows', () => {
    const table = new PackedTable(2, 100_000)
    const fingerprintOf = (index: number): Fingerprint =>
      ({ word0: Math.imul(index, 0x9e_37_79_b1), word1: index, word2: 0 }) as unknown as Fingerprint
    for (let index = 0; index < 20_000; index++) {
      table.write(table.insert(fingerprintOf(index), 0), verdictOf([index, -index]), 10)
    }
    const into = [0, 0]
    for (let index = 0; index < 20_000; index++) {
      expect(table.load(fingerprintOf(index), into)).not.toBe(NO_SLOT)
      expect(into).toEqual([index, -index])
    }
    expect(table.find(fingerprintOf(20_000))).toBe(NO_SLOT)
  })

  it('removes expired keys by itself as new keys come', () => {
    const table = new PackedTable(2, 100_000)
    const fingerprintOf = (index: number): Fingerprint =>
      ({ word0: Math.imul(index, 0x9e_37_79_b1), word1: index, word2: 0 }) as unknown as Fingerprint
    for (let index = 0; index < 1000; index++)
      table.write(table.insert(fingerprintOf(index), 0), verdictOf([1, 1], 10), 10)
    expect(table.isExpired(table.find(fingerprintOf(5)), 10)).toBe(false)
    expect(table.isExpired(table.find(fingerprintOf(5)), 11)).toBe(true)
    for (let index = 1000; index < 3000; index++) {
      table.write(table.insert(fingerprintOf(index), 500), verdictOf([1, 1], 1000), 10)
    }
    expect(table.size).toBe(2000)
    expect(table.evictions).toBe(0)
  })

  it('knows times after 2038', () => {
    const table = new PackedTable(2, 100)
    const fingerprint = { word0: 1, word1: 2, word2: 3 } as unknown as Fingerprint
    const slot = table.insert(fingerprint, 0)
    table.write(slot, verdictOf([1, 1], 3_000_000_000), 10)
    expect(table.isExpired(slot, 2_999_999_999)).toBe(false)
    expect(table.isExpired(slot, 3_000_000_001)).toBe(true)
  })
})
