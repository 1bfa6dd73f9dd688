import { openConfigStore } from '@sluice/config-store'
import type { PostgresServer } from '@sluice/testing/servers'
import { startPostgres } from '@sluice/testing/servers'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { describeCallers } from './callers.suite.test.support.ts'
import type { TestDatabases } from './database.test.support.ts'
import { describeKeys } from './keys.suite.test.support.ts'
import { describeRules } from './rules.suite.test.support.ts'
import { describeVersions } from './versions.suite.test.support.ts'

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
})

afterAll(() => server.close())

const DATABASES: TestDatabases = {
  async create() {
    const { url } = await server.createDatabase()
    return async (options) => {
      const config = await openConfigStore(url, options)
      onTestFinished(() => config.close())
      return config
    }
  },
}

describeRules(DATABASES)
describeCallers(DATABASES)
describeVersions(DATABASES)
describeKeys(DATABASES)
