import { openConfigStore } from '@sluice/config-store'
import { onTestFinished } from 'vitest'
import { MemoryRollups } from '../observability.test.support.ts'
import { rollupStoreSuite } from './rollup-store.suite.test.support.ts'

rollupStoreSuite('the memory that tests use', () => new MemoryRollups())

rollupStoreSuite('the configuration database', async () => {
  const config = await openConfigStore('sqlite::memory:')
  onTestFinished(() => config.close())
  return config.rollups
})
