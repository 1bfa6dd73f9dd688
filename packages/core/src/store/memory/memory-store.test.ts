import { deferredStore, storeSuite } from '@sluice/testing'
import { memoryStore } from './memory-store.ts'

storeSuite('memory', {
  create: (clock) => memoryStore({ clock }),
  createSmall: (clock) => memoryStore({ clock, maxKeys: 64 }),
  maxReservations: 1_000_000,
})
storeSuite('memory, by promise', {
  create: (clock) => deferredStore(memoryStore({ clock })),
  createSmall: (clock) => deferredStore(memoryStore({ clock, maxKeys: 64 })),
})
