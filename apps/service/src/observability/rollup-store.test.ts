import { rollupStoreSuite } from './rollup-store.suite.ts'
import { MemoryRollups } from './rollup-store.ts'

rollupStoreSuite('memory', () => new MemoryRollups())
