import { SluiceError } from '@sluice/core'
import type { SqlDriver, SqlTransaction } from '../sql-driver.ts'
import type { CanonicalKeys } from '../tables/entry-kinds.ts'
import { migration000001 } from './000001-initial-tables.ts'
import { migration000002 } from './000002-block-expiry.ts'
import { migration000003 } from './000003-shared-values.ts'
import { migration000004 } from './000004-canonical-keys.ts'
import { migration000005 } from './000005-audit-key-ids.ts'
import { migration000006 } from './000006-documents.ts'
import { type Migration, type MigrationContext, SQL_FORMS } from './migration.ts'

/** All migrations in order. Append new ones at the end. */
export const MIGRATIONS: readonly Migration[] = [
  migration000001,
  migration000002,
  migration000003,
  migration000004,
  migration000005,
  migration000006,
]

/** Table with one row for each migration that was applied; its column `number` is the schema version. */
export const SCHEMA_TABLE = 'schema_migrations'

/** Creating an index over many rows takes long, and so does waiting for another node that does it. */
const DEADLINE_MS = 600_000

/** An advisory lock number that other programs are unlikely to use. */
const LOCK = 7_236_114_901

/** Options of {@link migrate}. */
export interface MigrateOptions {
  readonly nowMs: () => number
  /** Canonicalizes the keys of entries. */
  readonly canonicalKeys: CanonicalKeys
  /** Default: all known migrations. */
  readonly migrations?: readonly Migration[]
}

/**
 * Migrates the schema to the newest version: each step in a transaction of its own, forward only. If several nodes
 * migrate at the same time, one does the work and the others wait. Fails with `SLUICE_UNSUPPORTED` if a newer program
 * has migrated the database.
 */
export async function migrate(
  driver: SqlDriver,
  { nowMs, canonicalKeys, migrations = MIGRATIONS }: MigrateOptions,
): Promise<{ readonly from: number; readonly to: number }> {
  const from = await driver.transaction(prepare, { deadlineMs: DEADLINE_MS })
  const to = migrations.at(-1)?.number ?? 0
  if (from > to) throw tooNew(from, to)
  for (const migration of migrations) {
    if (migration.number <= from) continue
    const context = { nowMs: nowMs(), canonicalKeys }
    await driver.transaction((transaction) => apply(transaction, migration, context), { deadlineMs: DEADLINE_MS })
  }
  return { from, to }
}

async function prepare(transaction: SqlTransaction): Promise<number> {
  await lock(transaction)
  const { whole, end } = SQL_FORMS[transaction.dialect]
  await transaction.query(
    `CREATE TABLE IF NOT EXISTS ${SCHEMA_TABLE} (number ${whole} PRIMARY KEY, applied_at ${whole} NOT NULL)${end}`,
  )
  return await newest(transaction)
}

async function apply(transaction: SqlTransaction, migration: Migration, context: MigrationContext): Promise<void> {
  await lock(transaction)
  // Another node may have applied it meanwhile.
  if ((await newest(transaction)) >= migration.number) return
  for (const statement of migration.statements(SQL_FORMS[transaction.dialect])) await transaction.query(statement)
  await migration.run?.(transaction, context)
  await transaction.query(`INSERT INTO ${SCHEMA_TABLE} (number, applied_at) VALUES (?, ?)`, [
    migration.number,
    context.nowMs,
  ])
}

/** SQLite has a single writer anyway. */
async function lock(transaction: SqlTransaction): Promise<void> {
  if (transaction.dialect === 'postgres') await transaction.query('SELECT pg_advisory_xact_lock(?::bigint)', [LOCK])
}

async function newest(transaction: SqlTransaction): Promise<number> {
  const [row] = await transaction.query<{ number: number | null }>(`SELECT max(number) AS number FROM ${SCHEMA_TABLE}`)
  return row?.number ?? 0
}

function tooNew(found: number, known: number): SluiceError {
  return new SluiceError('SLUICE_UNSUPPORTED', {
    problem: `the configuration database has schema version ${found}, made by a newer program`,
    expected: `at most schema version ${known}`,
    action: 'Upgrade this program, or use another database. Migrations are never reverted.',
  })
}
