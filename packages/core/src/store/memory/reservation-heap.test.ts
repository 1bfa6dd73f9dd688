import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Receipt } from '../store.ts'
import { ReservationHeap } from './reservation-heap.ts'

function receipt(holder: number): Receipt {
  return { holder, held: true, leaseMicros: 0, charges: [] }
}

describe('ReservationHeap', () => {
  it('returns expired reservations, soonest first, and nothing else', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ expiresAt: fc.nat(50), removed: fc.boolean() }), { maxLength: 60 }),
        fc.nat(60),
        (holds, now) => {
          const heap = new ReservationHeap()
          for (const [index, { expiresAt }] of holds.entries()) heap.add(receipt(index + 1), expiresAt)
          for (const [index, { removed }] of holds.entries()) if (removed) expect(heap.remove(index + 1)).toBe(true)
          const due = holds
            .map(({ expiresAt, removed }, index) => ({ expiresAt, removed, holder: index + 1 }))
            .filter(({ expiresAt, removed }) => expiresAt <= now && !removed)
          const returned: number[] = []
          for (let next = heap.nextExpired(now); next !== undefined; next = heap.nextExpired(now))
            returned.push(next.receipt.holder)
          expect(returned.toSorted((a, b) => a - b)).toEqual(due.map(({ holder }) => holder))
          const times = returned.map((holder) => holds[holder - 1]!.expiresAt)
          expect(times).toEqual(times.toSorted((a, b) => a - b))
          expect(heap.size).toBe(holds.filter(({ removed }) => !removed).length - due.length)
        },
      ),
    )
  })

  it('removes a reservation once, and not after it has expired', () => {
    const heap = new ReservationHeap()
    heap.add(receipt(1), 10)
    heap.add(receipt(2), 20)
    expect([heap.remove(1), heap.remove(1), heap.remove(3)]).toEqual([true, false, false])
    expect(heap.nextExpired(20)?.receipt.holder).toBe(2)
    expect(heap.remove(2)).toBe(false)
  })

  it('replaces a reservation of the same holder', () => {
    const heap = new ReservationHeap()
    heap.add(receipt(1), 10)
    heap.add(receipt(1), 20)
    expect(heap.nextExpired(15)).toBeUndefined()
    expect(heap.nextExpired(20)?.endsAt).toBe(20)
    expect([heap.size, heap.nextExpired(99)]).toEqual([0, undefined])
  })

  it('is full at a million, and throws before it adds anything', () => {
    const heap = new ReservationHeap()
    for (let holder = 1; holder <= 1_000_000; holder++) heap.add(receipt(holder), holder)
    const full = expect.objectContaining({ code: 'SLUICE_STORE_FULL', received: 1_000_000 })
    expect(() => heap.checkRoom()).toThrow(full)
    expect(() => heap.add(receipt(1_000_001), 1)).toThrow(full)
    expect(heap.size).toBe(1_000_000)
    heap.remove(500)
    expect(() => heap.checkRoom()).not.toThrow()
  })
})
