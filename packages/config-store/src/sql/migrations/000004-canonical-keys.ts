import { mergeSpellings } from './merge-canonical-keys.ts'
import type { Migration } from './migration.ts'

/**
 * Keys of entries are spelled in one way, so that what is one entry to an engine is one row. Before, they were kept as they were
 * written: of rows that are one, the newest stays.
 */
export const migration000004: Migration = {
  number: 4,
  statements: () => [],
  run: mergeSpellings,
}
