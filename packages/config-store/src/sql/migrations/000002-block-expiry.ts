import type { Migration } from './migration.ts'

/** Adds the time when a block can be deleted, with an index to find expired blocks. */
export const migration000002: Migration = {
  number: 2,
  statements: ({ dialect, whole }) => [
    `ALTER TABLE blocks ADD COLUMN forgotten_at ${whole} NOT NULL DEFAULT 0`,
    dialect === 'sqlite'
      ? `UPDATE blocks SET forgotten_at =
          CAST(max(json_extract(body, '$.until'), json_extract(body, '$.forgottenAt')) AS INTEGER)`
      : `UPDATE blocks SET forgotten_at =
          GREATEST((body::json ->> 'until')::float8, (body::json ->> 'forgottenAt')::float8)::bigint`,
    'CREATE INDEX blocks_by_end ON blocks (forgotten_at)',
  ],
}
