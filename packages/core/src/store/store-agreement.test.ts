import { deferredStore, expectSameStores, ReferenceStore } from '@sluice/testing'
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
    const create = (clock: ConstructorParameters<typeof ReferenceStore>[0]) => ({
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
})
