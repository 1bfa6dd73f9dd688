import type { PostgresServer } from '@sluice/testing/servers'
import { startPostgres } from '@sluice/testing/servers'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { openConfigStore } from '../../open-config-store.ts'
import { describeConfigStore } from '../config-store.suite.test.support.ts'

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
})

afterAll(() => server.close())

describeConfigStore('PostgreSQL', {
  isShared: true,
  async create() {
    const { url } = await server.createDatabase()
    return {
      async open(options) {
        const store = await openConfigStore(url, options)
        onTestFinished(() => store.close())
        return store
      },
    }
  },
})
