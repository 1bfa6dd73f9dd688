import type { Rule, Settlement } from '@sluice/core'
import { compileRule, createBatch, createItem, MICROS_PER_MS } from '@sluice/core/internal'
import type { Batch, Limit } from '@sluice/core/store'
import { receiptOf } from '@sluice/core/store'
import { describe, expect, it } from 'vitest'
import { FakeClock, START_MICROS } from '../fakes/fake-clock.ts'
import { storeSuite } from '../suites/store/store.suite.ts'
import { ReferenceStore } from './reference-store.ts'

storeSuite('reference', { create: (clock) => new ReferenceStore(clock) })

/** A store with one rule, asked about the key "a". */
class StoreFixture {
  readonly clock = new FakeClock()
  readonly store: ReferenceStore = new ReferenceStore(this.clock)
  readonly limits: readonly Limit[]
  #holder = 0

  constructor(rule: Rule) {
    this.limits = compileRule('rule', rule)
  }

  ask(cost: number, options: Partial<Batch> = {}): Batch {
    const items = this.limits.map((limit) => createItem(limit, 'a', cost))
    const batch = Object.assign(createBatch(items), { holder: ++this.#holder, ...options })
    this.store.decide(batch)
    return batch
  }

  lease(cost: number, ms: number, partial = false): Batch {
    return this.ask(cost, { leaseMicros: ms * MICROS_PER_MS, partial })
  }

  settle(batch: Batch, spent: number): Settlement {
    return this.store.settle(
      receiptOf(batch),
      batch.items.map(() => spent),
    )
  }

  /** Units left of the first limit. */
  get left(): number {
    const verdict = this.ask(0, { charge: false }).items[0]!.verdict
    return verdict.remaining
  }
}

const BUCKET: Rule = { algorithm: 'token-bucket', capacity: 10, refillPerSecond: 1 }
const WINDOW: Rule = { algorithm: 'fixed-window', limit: 10, window: '10s' }

describe('units on lease', () => {
  it('count in full while time goes on, and flow off only from the settlement', () => {
    const fixture = new StoreFixture(BUCKET)
    const lease = fixture.lease(6, 5000)
    expect(lease).toMatchObject({ allowed: true, items: [{ verdict: { remaining: 4 } }] })
    fixture.clock.advance(4000)
    expect(fixture.left).toBe(4)
    expect(fixture.settle(lease, 5)).toEqual({ outcome: 'settled', corrected: -1 })
    expect(fixture.left).toBe(5)
    fixture.clock.advance(2000)
    expect(fixture.left).toBe(7)
  })

  it('count in the window that is running, and are charged to the one they are settled in', () => {
    const fixture = new StoreFixture(WINDOW)
    fixture.clock.advance(9500)
    const lease = fixture.lease(6, 1000)
    fixture.clock.advance(500)
    expect(fixture.left).toBe(4)
    fixture.settle(lease, 6)
    expect(fixture.left).toBe(4)
    fixture.clock.advance(10_000)
    expect(fixture.left).toBe(10)
  })

  it('are charged whole at the end of the lease, as of that instant', () => {
    const fixture = new StoreFixture(BUCKET)
    fixture.lease(6, 1000)
    fixture.clock.advance(999)
    expect(fixture.left).toBe(4)
    fixture.clock.advance(3001)
    expect(fixture.left).toBe(7)
  })

  it('that were not spent are given back late, once the lease has ended', () => {
    const fixture = new StoreFixture(WINDOW)
    const lease = fixture.lease(6, 1000)
    fixture.clock.advance(1000)
    expect(fixture.left).toBe(4)
    expect(fixture.settle(lease, 2)).toEqual({ outcome: 'late', corrected: -4 })
    expect(fixture.left).toBe(8)
  })

  it('are not given back twice, nor after a reset', () => {
    const fixture = new StoreFixture(WINDOW)
    const lease = fixture.lease(6, 1000)
    expect(fixture.settle(lease, 2)).toEqual({ outcome: 'settled', corrected: -4 })
    expect(fixture.settle(lease, 2)).toEqual({ outcome: 'gone', corrected: 0 })
    expect(fixture.left).toBe(8)
    const other = fixture.lease(6, 1000)
    fixture.store.reset(fixture.limits, 'a')
    expect(fixture.ask(7).allowed).toBe(true)
    expect(fixture.settle(other, 0)).toEqual({ outcome: 'gone', corrected: 0 })
    expect(fixture.left).toBe(3)
  })

  it('are granted as far as they are left, of all limits alike', () => {
    const windows = [
      { limit: 5, window: '1s' },
      { limit: 7, window: '1m' },
    ] as const
    const fixture = new StoreFixture({ algorithm: 'fixed-window', windows })
    fixture.ask(2)
    const lease = fixture.lease(9, 1000, true)
    expect(lease).toMatchObject({ allowed: true, items: [{ cost: 3 }, { cost: 3 }] })
    expect(fixture.lease(1, 1000, true).allowed).toBe(false)
    expect(fixture.settle(lease, 1)).toEqual({ outcome: 'settled', corrected: -4 })
    expect(fixture.ask(0, { charge: false }).items.map(({ verdict }) => verdict.remaining)).toEqual([2, 4])
  })

  it('deny others with the instant at which these would fit', () => {
    const fixture = new StoreFixture(BUCKET)
    fixture.lease(6, 5000)
    const denied = fixture.ask(5)
    expect(denied).toMatchObject({ allowed: false, items: [{ verdict: { ruling: 'limit', remaining: 4 } }] })
    // Nothing but the lease stands in the way, so it is its end.
    expect(denied.items[0]!.verdict.retryAt).toBe(START_MICROS + 5000 * MICROS_PER_MS)
    expect(fixture.ask(11).items[0]!.verdict.ruling).toBe('never')
  })

  it('end in the order of time beside reservations that run out', () => {
    const fixture = new StoreFixture(BUCKET)
    fixture.ask(4, { holdMicros: 1_000_000 })
    fixture.lease(6, 2000)
    fixture.clock.advance(3000)
    // 1 s: 3 of the 4 have not flowed off and are given back. 2 s: 6 are charged. 3 s: 1 has flowed off.
    expect(fixture.left).toBe(5)
  })
})
