import { MIGRATIONS } from './sql/migrations/migrate.ts'

// An entry of its own, for programs that look at a database without opening it as a configuration store.

export { SCHEMA_TABLE } from './sql/migrations/migrate.ts'

/** Newest schema version: the one that `openConfigStore` migrates a database to. */
export const SCHEMA_VERSION: number = MIGRATIONS.at(-1)!.number
