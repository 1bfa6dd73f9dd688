import {
  deferredStore,
  expectSameDecisions,
  expectSameStores,
  FakeClock,
  type Operation,
  ReferenceStore,
} from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { createLimiter } from '../limiter/create-any-limiter.ts'
import { memoryStore } from './memory/memory-store.ts'
import { sharedMemoryStore } from './shared/shared-memory-store.ts'

describe('random operations get the same answers as from the reference store', () => {
  it('in memory', async () => {
    await expectSameStores((clock) => ({ one: new ReferenceStore(clock), other: memoryStore({ clock }) }), {
      numRuns: 1000,
    })
  })

  it('in memory, by promise', async () => {
    const create = (clock: FakeClock) => ({
      one: new ReferenceStore(clock),
      other: deferredStore(memoryStore({ clock })),
    })
    await expectSameStores(create, { numRuns: 200 })
  })

  it('in shared memory', async () => {
    await expectSameStores(
      (clock) => ({
        one: new ReferenceStore(clock),
        other: sharedMemoryStore({ clock, maxKeys: 64, maxStateSize: 64 }),
      }),
      { numRuns: 1000 },
    )
  })

  it('when something that was never there runs out', async () => {
    // A reservation of nothing leaves no trace, so that nothing carries over.
    const sequence: Operation[] = [
      { kind: 'reserve', rule: 'rollover', key: 'b', cost: 0, expiresAfterMs: 1 },
      { kind: 'advance', ms: 1 },
      { kind: 'peek', rule: 'bucket', key: 'a', cost: 1, partial: false, entitled: true },
      { kind: 'advance', ms: 1999 },
      { kind: 'checkAll', requests: [{ rule: 'rollover', key: 'b', cost: 0 }] },
    ]
    const stores = [
      (clock: FakeClock) => memoryStore({ clock }),
      (clock: FakeClock) => sharedMemoryStore({ clock, maxKeys: 64, maxStateSize: 64 }),
    ]
    for (const create of stores) {
      const clock = new FakeClock()
      await expectSameDecisions(new ReferenceStore(clock), create(clock), { operations: sequence, clock })
    }
  })
})

describe('a settlement that makes several counters at once', () => {
  it.each([
    ['in memory', (clock: FakeClock) => memoryStore({ clock, maxKeys: 64 })],
    ['in shared memory', (clock: FakeClock) => sharedMemoryStore({ clock, maxKeys: 64 })],
  ])('finds a place for each %s', (_what, create) => {
    const windows = [
      { limit: 9, window: '1m' },
      { limit: 9, window: '1h' },
      { limit: 9, window: '1d' },
    ] as const
    const clock = new FakeClock()
    const limiter = createLimiter({ algorithm: 'fixed-window', windows, clock, store: create(clock) })
    for (let index = 0; index < 500; index++) {
      const reservation = limiter.reserve(`key-${index}`, { cost: 0 })
      if (!reservation.allowed) throw new Error('denied')
      expect(reservation.settle(2)).toEqual({ outcome: 'settled', corrected: 6 })
      expect(limiter.peek(`key-${index}`).limits).toMatchObject([{ remaining: 7 }, { remaining: 7 }, { remaining: 7 }])
      limiter.reset(`key-${index}`)
    }
  })
})
