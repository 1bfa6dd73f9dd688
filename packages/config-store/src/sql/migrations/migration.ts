import type { SqlDialect, SqlTransaction } from '../sql-driver.ts'
import type { CanonicalKeys } from '../tables/entry-kinds.ts'

/** SQL types and clauses of one database. */
export interface SqlForms {
  readonly dialect: SqlDialect
  /** An integer up to 2^53: amounts, positions, milliseconds since 1970. */
  readonly whole: string
  readonly real: string
  readonly text: string
  /** A string that rows are found and sorted by, byte by byte. */
  readonly name: string
  /** The type of an auto-incrementing primary key. */
  readonly counter: string
  /** The end of CREATE TABLE. */
  readonly end: string
  /** The end of CREATE TABLE for a table clustered by its primary key. */
  readonly endByKey: string
}

/** Arguments of a migration. */
export interface MigrationContext {
  /** Milliseconds since 1970. */
  readonly nowMs: number
  readonly canonicalKeys: CanonicalKeys
}

/** A migration of the schema by one version. Never changed once released. */
export interface Migration {
  /** 1, 2, 3, ... without gaps. */
  readonly number: number
  statements(forms: SqlForms): readonly string[]
  /** What SQL cannot express; runs after the statements, in the same transaction. */
  run?(transaction: SqlTransaction, context: MigrationContext): Promise<void>
}

export const SQL_FORMS: Readonly<Record<SqlDialect, SqlForms>> = {
  sqlite: {
    dialect: 'sqlite',
    whole: 'INTEGER',
    real: 'REAL',
    text: 'TEXT',
    name: 'TEXT',
    counter: 'INTEGER PRIMARY KEY AUTOINCREMENT',
    end: ' STRICT',
    endByKey: ' STRICT, WITHOUT ROWID',
  },
  postgres: {
    dialect: 'postgres',
    whole: 'BIGINT',
    real: 'DOUBLE PRECISION',
    text: 'TEXT',
    name: 'TEXT COLLATE "C"',
    counter: 'BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY',
    end: '',
    endByKey: '',
  },
}
