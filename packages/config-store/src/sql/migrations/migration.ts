import type { SqlDialect, SqlTransaction } from '../sql-driver.ts'
import type { CanonicalKeys } from '../tables/entry-kinds.ts'

/** How one database writes what both have. */
export interface SqlForms {
  readonly dialect: SqlDialect
  /** A whole number up to 2^53: amounts, positions, milliseconds since 1970. */
  readonly whole: string
  readonly real: string
  readonly text: string
  /** A text that rows are found and sorted by, byte by byte. */
  readonly name: string
  /** The type of a column that numbers its rows, rising. */
  readonly counter: string
  /** The end of a table. */
  readonly end: string
  /** The end of a table that is kept in the order of its primary key. */
  readonly endByKey: string
}

/** What a step works with. */
export interface MigrationContext {
  /** Milliseconds since 1970. */
  readonly nowMs: number
  readonly canonicalKeys: CanonicalKeys
}

/** A step from one form of the tables to the next. Once released, it is never changed. */
export interface Migration {
  /** 1, 2, 3, ... without gaps. */
  readonly number: number
  statements(forms: SqlForms): readonly string[]
  /** What cannot be said in SQL, done after the statements and in the same transaction. */
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
