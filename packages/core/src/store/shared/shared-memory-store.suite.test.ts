import { expectSameStores, storeSuite } from '@sluice/testing'
import { test } from 'vitest'
import { memoryStore } from '../memory/memory-store.ts'
import { sharedMemoryStore } from './shared-memory-store.ts'

storeSuite('sharedMemoryStore', {
  create: (clock) => sharedMemoryStore({ clock, maxKeys: 4000, maxStateSize: 600 }),
  createSmall: (clock) => sharedMemoryStore({ clock, maxKeys: 16, maxStateSize: 20 }),
  maxReservations: 1_000_000,
})

test('answers as the memory store does, whatever is done to both', async () => {
  await expectSameStores((clock) => ({
    one: memoryStore({ clock }),
    other: sharedMemoryStore({ clock, maxKeys: 1000, maxStateSize: 2000 }),
  }))
})
