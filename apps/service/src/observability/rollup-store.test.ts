import { rollupStoreSuite } from './rollup-store.suite.test.support.ts'
import { MemoryRollups } from './rollup-store.ts'

rollupStoreSuite('memory', () => new MemoryRollups())
