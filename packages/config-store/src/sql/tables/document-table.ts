import type { DocumentTable, StoredDocument } from '../../document-table.ts'
import type { SqlDriver } from '../sql-driver.ts'

/** Documents in a database. */
export class SqlDocumentTable implements DocumentTable {
  readonly #driver: SqlDriver

  constructor(driver: SqlDriver) {
    this.#driver = driver
  }

  async get(name: string): Promise<StoredDocument | undefined> {
    const sql = 'SELECT revision, body FROM documents WHERE name = ?'
    const [row] = await this.#driver.query<StoredDocument>(sql, [name])
    return row === undefined ? undefined : { revision: row.revision, body: row.body }
  }

  async put(name: string, body: string, revision: number): Promise<boolean> {
    return await this.#driver.transaction(async (transaction) => {
      const rows =
        revision === 0
          ? await transaction.query(
              'INSERT INTO documents (name, revision, body) VALUES (?, 1, ?) ON CONFLICT DO NOTHING RETURNING revision',
              [name, body],
            )
          : await transaction.query(
              'UPDATE documents SET body = ?, revision = revision + 1 WHERE name = ? AND revision = ? RETURNING revision',
              [body, name, revision],
            )
      return rows.length > 0
    })
  }
}
