import type { Migration } from './migration.ts'

/** Documents that nodes change together, such as the alerts of a cluster. */
export const migration000006: Migration = {
  number: 6,
  statements: ({ whole, text, name, endByKey }) => [
    `CREATE TABLE documents (
      name ${name} PRIMARY KEY,
      revision ${whole} NOT NULL,
      body ${text} NOT NULL
    )${endByKey}`,
  ],
}
