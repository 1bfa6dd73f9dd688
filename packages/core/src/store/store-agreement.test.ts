import {
  deferredStore,
  expectSameDecisions,
  expectSameStores,
  FakeClock,
  type Operation,
  ReferenceStore,
} from '@sluice/testing'
import { describe, it } from 'vitest'
import { memoryStore } from './memory-store.ts'
import { sharedMemoryStore } from './shared-memory-store.ts'

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
