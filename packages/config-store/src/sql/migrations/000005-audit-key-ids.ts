import type { Migration } from './migration.ts'

/** Audit records say which API key was used, because names are not unique, and what exactly was touched. */
export const migration000005: Migration = {
  number: 5,
  statements: ({ text, name }) => [
    `ALTER TABLE audit ADD COLUMN key_id ${name}`,
    `ALTER TABLE audit ADD COLUMN details ${text}`,
    'CREATE INDEX audit_by_key ON audit (key_id, number)',
  ],
}
