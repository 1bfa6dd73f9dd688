import fc from 'fast-check'
import { expect, it } from 'vitest'
import { cooperativeSort } from './cooperative-sort.ts'

const byKey = (one: { key: number }, other: { key: number }): number => one.key - other.key

it('property: sorts as toSorted does, equal items in the order they came, also over many turns', async () => {
  const lists = fc.tuple(fc.integer({ min: 0, max: 45_000 }), fc.integer({ min: 1, max: 30_000 }), fc.nat())
  await fc.assert(
    fc.asyncProperty(lists, async ([length, keys, seed]) => {
      const items = Array.from({ length }, (_, index) => ({ key: (index * 7919 + seed) % keys, index }))
      let turns = 0
      const nextTurn = (): Promise<void> => {
        turns++
        return Promise.resolve()
      }
      const sorted = await cooperativeSort(items, { compare: byKey, nextTurn })
      expect(sorted).toEqual(items.toSorted(byKey))
      expect(turns).toBeGreaterThanOrEqual(Math.floor(length / 10_000))
    }),
    { numRuns: 20 },
  )
})
