import type { Migration } from './migration.ts'

/** Values that nodes share besides rules: secrets, leased numbers, and historical totals. */
export const migration000003: Migration = {
  number: 3,
  statements: ({ whole, text, name, endByKey }) => [
    `CREATE TABLE secrets (name ${name} PRIMARY KEY, value ${text} NOT NULL)${endByKey}`,
    `CREATE TABLE number_leases (
      name ${name} NOT NULL,
      number ${whole} NOT NULL,
      holder ${text} NOT NULL,
      until ${whole} NOT NULL,
      PRIMARY KEY (name, number)
    )${endByKey}`,
    `CREATE TABLE rollups (
      step_ms ${whole} NOT NULL,
      at ${whole} NOT NULL,
      source ${name} NOT NULL,
      body ${text} NOT NULL,
      PRIMARY KEY (step_ms, at, source)
    )${endByKey}`,
  ],
}
