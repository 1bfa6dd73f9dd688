import type { ConfigChange } from '../config-writer.ts'
import { storedKey } from '../text-encoding.ts'

/** How long a node can be away and still learn of every removal without loading everything again: 7 days. */
const REMOVALS_KEPT_MS: number = 7 * 24 * 60 * 60 * 1000

/** Old ones that are forgotten with each new one: more than come in, so that they do not pile up. */
const FORGOTTEN_AT_ONCE = 1000

/** Notes in the feed that an entry is gone, at the position of the change, and forgets what is older than 7 days. */
export async function recordRemoval(change: ConfigChange, kind: string, key: unknown): Promise<void> {
  const { transaction, position, at } = change
  const body = JSON.stringify(key)
  await transaction.query(
    `INSERT INTO removals (kind, key, body, position, removed_at) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (kind, key) DO UPDATE SET position = excluded.position, removed_at = excluded.removed_at`,
    [kind, storedKey(body), body, position, at],
  )
  const forgotten = await transaction.query<{ position: number }>(
    `DELETE FROM removals WHERE position IN
      (SELECT position FROM removals WHERE removed_at < ? ORDER BY removed_at LIMIT ?) RETURNING position`,
    [at - REMOVALS_KEPT_MS, FORGOTTEN_AT_ONCE],
  )
  const floor = forgotten.reduce((highest, row) => Math.max(highest, row.position), 0)
  if (floor > 0) await transaction.query('UPDATE feed_head SET floor = ? WHERE id = 1 AND floor < ?', [floor, floor])
}
