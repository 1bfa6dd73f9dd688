import type { EntityKey, OverrideKey } from '../../config-entries.ts'
import type { ChangeBatch, ChangeFeed, EntryChange, VersionsInForce } from '../../config-store.ts'
import type { ConfigChange } from '../config-writer.ts'
import type { SqlDriver } from '../sql-driver.ts'
import { encodeKey } from '../text-encoding.ts'
import { apiKeyOf } from './api-key-table.ts'
import { BLOCKS, type CanonicalKeys, type EntryKind, MEMBERS, OVERRIDES } from './entry-kinds.ts'
import { readInForce } from './version-rows.ts'
import { contentOf } from './version-table.ts'

/** Entries per batch of a load. */
const LOADED_AT_ONCE = 5000
/** Changes per batch. */
const CHANGES_AT_ONCE = 2000

type ChangeKind = EntryChange['kind'] | 'version'

interface ChangeRow {
  readonly kind: ChangeKind
  readonly position: number
  /** 1 if the entry was removed and the body is its key. */
  readonly gone: number
  readonly body: string
  readonly secret_hash: string | null
}

/**
 * One query per table for the rows after a position, with a limit. There is no upper bound on the position: with one,
 * PostgreSQL without up-to-date statistics sorts all rows instead of walking the index.
 */
const CHANGES: readonly string[] = [
  changesOf('overrides', "'override'"),
  changesOf('members', "'member'"),
  changesOf('blocks', "'block'"),
  changesOf('incident', "'incident'"),
  changesOf('api_keys', "'api-key'", { secretHash: 'secret_hash' }),
  changesOf('removals', 'kind', { gone: 1 }),
  changesOf('versions', "'version'", { body: 'stage' }),
]

const SINCE = `${CHANGES.join('\nUNION ALL\n')}\nORDER BY position LIMIT ?`

function changesOf(
  table: string,
  kind: string,
  { gone = 0, body = 'body', secretHash = 'NULL' }: { gone?: number; body?: string; secretHash?: string } = {},
): string {
  const columns = `${kind} AS kind, position, ${gone} AS gone, ${body} AS body, ${secretHash} AS secret_hash`
  const rows = `SELECT ${columns} FROM ${table} WHERE position > ? ORDER BY position LIMIT ?`
  return `SELECT * FROM (${rows}) AS ${table}_changes`
}

/**
 * The change feed. Every row has the unique position of its last change; removed entries leave a row in `removals`. The
 * changes since a position are the rows above it.
 */
export class SqlChangeFeed implements ChangeFeed {
  readonly #driver: SqlDriver
  readonly #canonicalKeys: CanonicalKeys

  constructor(driver: SqlDriver, canonicalKeys: CanonicalKeys) {
    this.#driver = driver
    this.#canonicalKeys = canonicalKeys
  }

  get ipv6PrefixLength(): number {
    return this.#canonicalKeys.ipv6PrefixLength
  }

  async head(): Promise<number> {
    return (await this.#readHead()).position
  }

  async *load(): AsyncGenerator<ChangeBatch> {
    // Read first: changes made during the load have higher positions and are delivered again.
    const position = await this.head()
    const part = (changes: readonly EntryChange[]): ChangeBatch => {
      return { restart: false, position, versions: undefined, changes, more: true }
    }
    yield { ...part([]), versions: await this.#readVersions() }
    yield part(await this.#readIncident())
    for await (const changes of this.#readApiKeys()) yield part(changes)
    for await (const changes of this.#readEntries(BLOCKS)) yield part(changes)
    for await (const changes of this.#readEntries(MEMBERS)) yield part(changes)
    for await (const changes of this.#readEntries(OVERRIDES)) yield part(changes)
    yield { ...part([]), more: false }
  }

  async since(position: number): Promise<ChangeBatch> {
    const head = await this.#readHead()
    if (!(position >= head.floor && position <= head.position)) {
      return { restart: true, position: head.position, versions: undefined, changes: [], more: false }
    }
    if (position === head.position) {
      return { restart: false, position, versions: undefined, changes: [], more: false }
    }
    const bounds = CHANGES.flatMap(() => [position, CHANGES_AT_ONCE])
    const rows = await this.#driver.query<ChangeRow>(SINCE, [...bounds, CHANGES_AT_ONCE])
    // One statement sees everything up to the highest position it returns. A full batch may be followed by more.
    const isFull = rows.length === CHANGES_AT_ONCE
    const last = rows.at(-1)?.position ?? 0
    const until = isFull ? last : Math.max(last, head.position)
    const isAnyVersion = rows.some(({ kind, body }) => kind === 'version' && body !== 'draft')
    return {
      restart: false,
      position: until,
      versions: isAnyVersion ? await this.#readVersions() : undefined,
      changes: rows.filter(({ kind }) => kind !== 'version').map((row) => this.#changeOf(row)),
      more: until < head.position,
    }
  }

  watch(changed: () => void, lost: (error: unknown) => void): Promise<() => Promise<void>> {
    return this.#driver.listen(changed, lost)
  }

  async #readHead(): Promise<{ readonly position: number; readonly floor: number }> {
    const sql = 'SELECT position, floor FROM feed_head WHERE id = 1'
    return (await this.#driver.query<{ position: number; floor: number }>(sql))[0]!
  }

  async #readVersions(): Promise<VersionsInForce> {
    const { enforced, candidate } = await readInForce(this.#driver)
    return {
      enforced: enforced && (await contentOf(this.#driver, enforced)),
      candidate: candidate && (await contentOf(this.#driver, candidate)),
    }
  }

  async #readIncident(): Promise<readonly EntryChange[]> {
    const rows = await this.#driver.query<{ body: string }>('SELECT body FROM incident')
    return rows.map(({ body }) => ({ kind: 'incident', entry: JSON.parse(body) }))
  }

  async *#readApiKeys(): AsyncGenerator<readonly EntryChange[]> {
    const sql = 'SELECT id, secret_hash, body FROM api_keys WHERE id > ? ORDER BY id LIMIT ?'
    for (let after = ''; ; ) {
      const rows = await this.#driver.query<{ id: string; secret_hash: string; body: string }>(sql, [
        after,
        LOADED_AT_ONCE,
      ])
      if (rows.length > 0) yield rows.map((row) => this.#changeOf({ ...row, kind: 'api-key', gone: 0, position: 0 }))
      if (rows.length < LOADED_AT_ONCE) return
      after = rows.at(-1)!.id
    }
  }

  async *#readEntries<E, Key>({ kind, table, keyParts }: EntryKind<E, Key>): AsyncGenerator<readonly EntryChange[]> {
    const columns = keyParts.join(', ')
    const places = keyParts.map(() => '?').join(', ')
    const sql = `SELECT ${columns}, body FROM ${table} WHERE (${columns}) > (${places}) ORDER BY ${columns} LIMIT ?`
    for (let after = keyParts.map(() => ''); ; ) {
      const rows = await this.#driver.query<Record<string, string>>(sql, [...after, LOADED_AT_ONCE])
      if (rows.length > 0) yield rows.map((row) => this.#entryChange(kind, JSON.parse(row['body']!)))
      if (rows.length < LOADED_AT_ONCE) return
      const last = rows.at(-1)!
      after = keyParts.map((name) => last[name]!)
    }
  }

  #changeOf({ kind, gone, body, secret_hash }: ChangeRow): EntryChange {
    const value = JSON.parse(body)
    if (kind === 'incident') return { kind, entry: value }
    if (kind === 'api-key') {
      const apiKey = apiKeyOf({ body })
      return { kind, key: apiKey.id, entry: { ...apiKey, secretHash: secret_hash! } }
    }
    if (gone === 1) return { kind, key: value, entry: undefined } as EntryChange
    return this.#entryChange(kind as 'override', value)
  }

  #entryChange(kind: 'override' | 'member' | 'block', entry: OverrideKey & EntityKey): EntryChange {
    const { dimension, entity, resource } = this.#canonicalKeys.canonical(entry)
    const key = kind === 'override' ? { dimension, entity, resource } : { dimension, entity }
    return { kind, key, entry } as unknown as EntryChange
  }
}

/** How long a node can be offline and still receive every removal without a full reload: 7 days. */
const REMOVALS_KEPT_MS: number = 7 * 24 * 60 * 60 * 1000

/** Old removals deleted per new one: more than come in, so that they do not accumulate. */
const FORGOTTEN_AT_ONCE = 1000

/** Records a removal in the feed at the position of the change, and deletes removals older than 7 days. */
export async function recordRemoval(change: ConfigChange, kind: string, key: unknown): Promise<void> {
  const { transaction, position, at } = change
  const body = JSON.stringify(key)
  await transaction.query(
    `INSERT INTO removals (kind, key, body, position, removed_at) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (kind, key) DO UPDATE SET position = excluded.position, removed_at = excluded.removed_at`,
    [kind, encodeKey(body), body, position, at],
  )
  const forgotten = await transaction.query<{ position: number }>(
    `DELETE FROM removals WHERE position IN
      (SELECT position FROM removals WHERE removed_at < ? ORDER BY removed_at LIMIT ?) RETURNING position`,
    [at - REMOVALS_KEPT_MS, FORGOTTEN_AT_ONCE],
  )
  const floor = forgotten.reduce((highest, row) => Math.max(highest, row.position), 0)
  if (floor > 0) await transaction.query('UPDATE feed_head SET floor = ? WHERE id = 1 AND floor < ?', [floor, floor])
}
