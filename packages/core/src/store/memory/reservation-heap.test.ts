import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Receipt } from '../store.ts'
import { ReservationHeap } from './reservation-heap.ts'

function receipt(holder: number): Receipt {
  return { holder, held: true, leaseMicros: 0, charges: [] }
}

describe('a hold book', () => {
  it('returns what has run out, soonest first, and nothing else', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ expiresAt: fc.nat(50), struck: fc.boolean() }), { maxLength: 60 }),
        fc.nat(60),
        (holds, now) => {
          const book = new ReservationHeap()
          for (const [index, { expiresAt }] of holds.entries()) book.add(receipt(index + 1), expiresAt)
          for (const [index, { struck }] of holds.entries()) if (struck) expect(book.strike(index + 1)).toBe(true)
          const due = holds
            .map(({ expiresAt, struck }, index) => ({ expiresAt, struck, holder: index + 1 }))
            .filter(({ expiresAt, struck }) => expiresAt <= now && !struck)
          const returned: number[] = []
          for (let next = book.nextExpired(now); next !== undefined; next = book.nextExpired(now))
            returned.push(next.receipt.holder)
          expect(returned.toSorted((a, b) => a - b)).toEqual(due.map(({ holder }) => holder))
          const times = returned.map((holder) => holds[holder - 1]!.expiresAt)
          expect(times).toEqual(times.toSorted((a, b) => a - b))
          expect(book.size).toBe(holds.filter(({ struck }) => !struck).length - due.length)
        },
      ),
    )
  })

  it('strikes a reservation off once, and not when it has run out', () => {
    const book = new ReservationHeap()
    book.add(receipt(1), 10)
    book.add(receipt(2), 20)
    expect([book.strike(1), book.strike(1), book.strike(3)]).toEqual([true, false, false])
    expect(book.nextExpired(20)?.receipt.holder).toBe(2)
    expect(book.strike(2)).toBe(false)
  })

  it('does not pile up what is settled long before it would run out', () => {
    const book = new ReservationHeap()
    for (let holder = 1; holder <= 50; holder++) book.add(receipt(holder), 1e9)
    for (let holder = 51; holder <= 100_000; holder++) {
      book.add(receipt(holder), 1e9 + holder)
      book.strike(holder)
      expect(book.places).toBeLessThanOrEqual(200)
    }
    expect(book.size).toBe(50)
    expect(book.nextExpired(1e9)?.receipt.holder).toBe(1)
  })

  it('is full at a million, and says so before anything is noted', () => {
    const book = new ReservationHeap()
    for (let holder = 1; holder <= 1_000_000; holder++) book.add(receipt(holder), holder)
    const full = expect.objectContaining({ code: 'SLUICE_STORE_FULL', received: 1_000_000 })
    expect(() => book.checkRoom()).toThrow(full)
    expect(() => book.add(receipt(1_000_001), 1)).toThrow(full)
    expect(book.size).toBe(1_000_000)
    book.strike(500)
    expect(() => book.checkRoom()).not.toThrow()
  })
})
