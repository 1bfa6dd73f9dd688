import { ReferenceStore } from './reference-store.ts'
import { storeSuite } from './store.suite.ts'

storeSuite('reference', { create: (clock) => new ReferenceStore(clock) })
