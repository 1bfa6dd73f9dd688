import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ExpiryHeap } from './expiry-heap.ts'

describe('ExpiryHeap', () => {
  it('has the entry that ends soonest first, after any additions and removals', () => {
    const steps = fc.array(fc.record({ endsAt: fc.nat(20), removed: fc.option(fc.nat(60)) }), { maxLength: 80 })
    fc.assert(
      fc.property(steps, (list) => {
        const heap = new ExpiryHeap<{ readonly endsAt: number; position: number }>()
        const model: { readonly endsAt: number; position: number }[] = []
        for (const { endsAt, removed } of list) {
          const entry = { endsAt, position: 0 }
          heap.add(entry)
          model.push(entry)
          if (removed !== null && removed < model.length) heap.remove(model.splice(removed, 1)[0]!)
          expect(heap.size).toBe(model.length)
          expect(heap.first?.endsAt).toBe(model.length === 0 ? undefined : Math.min(...model.map((one) => one.endsAt)))
        }
      }),
    )
  })
})
