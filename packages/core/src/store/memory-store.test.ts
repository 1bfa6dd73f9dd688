import { deferredStore, storeSuite } from '@sluice/testing'
import { memoryStore } from './memory-store.ts'

storeSuite('memory', { create: (clock) => memoryStore({ clock }) })
storeSuite('memory, by promise', { create: (clock) => deferredStore(memoryStore({ clock })) })
