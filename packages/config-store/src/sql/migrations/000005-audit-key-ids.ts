import type { Migration } from './migration.ts'

/** Adds the API key id to audit records, because names are not unique, and details of the action. */
export const migration000005: Migration = {
  number: 5,
  statements: ({ text, name }) => [
    `ALTER TABLE audit ADD COLUMN key_id ${name}`,
    `ALTER TABLE audit ADD COLUMN details ${text}`,
    'CREATE INDEX audit_by_key ON audit (key_id, number)',
  ],
}
