import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startRealService } from '../service.fixture.ts'

// Databases that earlier versions have written, kept as SQL. tools/keep-database.ts writes them, and says what is in
// them. A file is named after the schema version that it has, and never changes.

const FOLDER = join(import.meta.dirname, 'kept-databases')

const files = readdirSync(FOLDER)

/** A data folder with the database of a version, and the admin API key that it was created with. */
function dataFolder(file: string): { readonly dataDir: string; readonly key: string } {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-kept-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  const sql = readFileSync(join(FOLDER, file), 'utf8')
  const database = new DatabaseSync(join(dataDir, 'config.db'))
  database.exec(sql)
  database.close()
  return { dataDir, key: /^-- token: (\S+)$/m.exec(sql)![1]! }
}

function nameAndRole(item: unknown): [string, string] {
  const { name, role } = item as { readonly name: string; readonly role: string }
  return [name, role]
}

describe('a database of an earlier version', () => {
  it('was kept', () => {
    expect(files).toContain('schema-4.sql')
  })

  it.each(files)('%s starts, with its rules, entries, keys and audit log', async (file) => {
    const { dataDir, key } = dataFolder(file)
    const { port, service } = await startRealService({ dataDir })
    try {
      const items = async (path: string): Promise<readonly unknown[]> => {
        const url = `http://127.0.0.1:${port}/admin${path}`
        const response = await fetch(url, { headers: { Authorization: `Bearer ${key}` } })
        expect(response.status, path).toBe(200)
        return ((await response.json()) as { readonly items: readonly unknown[] }).items
      }
      expect(await items('/ratelimits')).toEqual([
        { resource: '*', rules: [{ name: 'all', dimension: 'user', limit: 100, window: '1m' }] },
        { resource: '/orders/:id', rules: [{ name: 'orders', dimension: 'user', limit: 10, window: '1m' }] },
      ])
      expect(await items('/overrides')).toMatchObject([{ entry: { entity: 'ada', terms: { limit: 500 } } }])
      expect(await items('/members')).toMatchObject([{ entry: { entity: 'bob', tier: 'premium' } }])
      expect(await items('/blocks')).toMatchObject([{ entry: { entity: 'mallory', reason: 'kept' } }])
      // In the order of their random ids.
      expect(new Map((await items('/api-keys')).map((item) => nameAndRole(item)))).toEqual(
        new Map([
          ['first', 'admin'],
          ['dashboard', 'viewer'],
        ]),
      )
      expect((await items('/audit')).map((record) => (record as { readonly action: string }).action)).toEqual([
        ...['api-key.create', 'block.put', 'member.put', 'override.put'],
        ...['version.stage', 'version.create', 'api-key.create', 'version.edit'],
      ])
    } finally {
      await service.stop({ drains: false })
    }
  })
})
