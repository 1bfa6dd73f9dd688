import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { openConfigStore } from '../../open-config-store.ts'
import { describeConfigStore } from '../config-store.suite.test.support.ts'

describeConfigStore('a SQLite file', {
  isShared: true,
  async create() {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-config-store-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    return {
      async open(options) {
        const store = await openConfigStore(join(folder, 'sluice.db'), options)
        onTestFinished(() => store.close())
        return store
      },
    }
  },
})

describeConfigStore('SQLite in memory', {
  isShared: false,
  create() {
    return Promise.resolve({
      async open(options) {
        const store = await openConfigStore('sqlite::memory:', options)
        onTestFinished(() => store.close())
        return store
      },
    })
  },
})
