import type { System } from '../../platform.ts'
import type { SecretTable } from '../../secret-table.ts'
import type { SqlDriver } from '../sql-driver.ts'

const SECRET_BYTES = 32

/** Secrets in a database, in hexadecimal. */
export class SqlSecretTable implements SecretTable {
  readonly #driver: SqlDriver
  readonly #system: Pick<System, 'randomBytes'>

  constructor(driver: SqlDriver, system: Pick<System, 'randomBytes'>) {
    this.#driver = driver
    this.#system = system
  }

  async get(name: string): Promise<Uint8Array> {
    const found = await this.#read(name)
    if (found !== undefined) return found
    const fresh = Buffer.from(this.#system.randomBytes(SECRET_BYTES)).toString('hex')
    await this.#driver.transaction(async (transaction) => {
      // Whoever was first has made it.
      await transaction.query('INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING', [name, fresh])
    })
    return (await this.#read(name))!
  }

  async #read(name: string): Promise<Uint8Array | undefined> {
    const [row] = await this.#driver.query<{ value: string }>('SELECT value FROM secrets WHERE name = ?', [name])
    return row === undefined ? undefined : Uint8Array.from(Buffer.from(row.value, 'hex'))
  }
}
