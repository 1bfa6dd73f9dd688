import { deferredStore, policySuite } from '@sluice/testing'
import { memoryStore } from '../store/memory/memory-store.ts'
import { sharedMemoryStore } from '../store/shared/shared-memory-store.ts'

policySuite('in memory', { create: (clock) => memoryStore({ clock }) })

policySuite('in shared memory', { create: (clock) => sharedMemoryStore({ clock, maxKeys: 4000, maxStateSize: 600 }) })

policySuite('on a store that answers later', { create: (clock) => deferredStore(memoryStore({ clock })) })
