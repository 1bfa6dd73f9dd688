import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openConfigStore } from '@sluice/config-store'
import { onTestFinished } from 'vitest'
import { describeCallers } from './callers.suite.test.support.ts'
import type { TestDatabases } from './database.test.support.ts'
import { describeKeys } from './keys.suite.test.support.ts'
import { describeRules } from './rules.suite.test.support.ts'
import { describeVersions } from './versions.suite.test.support.ts'

const DATABASES: TestDatabases = {
  async create() {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-admin-api-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    return async (options) => {
      const config = await openConfigStore(join(folder, 'sluice.db'), options)
      onTestFinished(() => config.close())
      return config
    }
  },
}

describeRules(DATABASES)
describeCallers(DATABASES)
describeVersions(DATABASES)
describeKeys(DATABASES)
