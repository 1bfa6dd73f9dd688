import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemRandom } from '@sluice/core'
import { onTestFinished } from 'vitest'
import { platform } from '../clock-and-random.ts'
import { openPostgres } from './postgres/postgres-driver.ts'
import type { SqlDriver } from './sql-driver.ts'
import { openSqlite } from './sqlite/sqlite-driver.ts'

/** Options of a driver in a test. */
export interface TestDriverOptions {
  readonly deadlineMs?: number
  readonly pollMs?: number
  readonly keepaliveMs?: number
  readonly connections?: number
}

/** The driver for an address, without a store on top. Closed when the test ends. */
export async function openDriver(url: string, options: TestDriverOptions = {}): Promise<SqlDriver> {
  const { deadlineMs = 5000, pollMs = 10, keepaliveMs = 10_000, connections = 4 } = options
  const common = { deadlineMs, platform, random: systemRandom }
  const driver = url.startsWith('postgres:')
    ? await openPostgres({ ...common, url, connections, keepaliveMs })
    : await openSqlite({ ...common, path: url, pollMs })
  onTestFinished(() => driver.close())
  return driver
}

/** The path of a file that does not exist yet, in a folder that is gone when the test is. */
export async function newFile(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-config-store-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return join(folder, 'sluice.db')
}
