import { SluiceError } from '@sluice/core'
import type { Author, Seen } from '../config-entries.ts'
import type { Notifier } from '../config-store.ts'
import type { SqlDriver, SqlTarget, SqlTransaction } from './sql-driver.ts'
import { encodeText } from './text-encoding.ts'

const LONGEST_AUTHOR = 200

/** An audit record. */
export interface AuditEntry {
  readonly action: string
  readonly target: string
  readonly details?: unknown
  /** Without secrets. A {@link JsonText} is stored unchanged. */
  readonly before?: unknown
  readonly after?: unknown
}

const AUDIT: SqlTarget = {
  table: 'audit',
  columns: [
    { name: 'at', type: 'bigint' },
    { name: 'author', type: 'text' },
    { name: 'key_id', type: 'text' },
    { name: 'note', type: 'text' },
    { name: 'action', type: 'text' },
    { name: 'target', type: 'text' },
    { name: 'details', type: 'text' },
    { name: 'before', type: 'text' },
    { name: 'after', type: 'text' },
  ],
  key: [],
}

/** A change in progress: rows, audit records and feed positions, written atomically. */
export class ConfigChange {
  readonly transaction: SqlTransaction
  /** Milliseconds since 1970. */
  readonly at: number
  readonly author: Author
  /** The feed position reserved for this change. */
  readonly position: number

  constructor(transaction: SqlTransaction, { at, author, position }: Pick<ConfigChange, 'at' | 'author' | 'position'>) {
    this.transaction = transaction
    this.at = at
    this.author = author
    this.position = position
  }

  /** Reserves `count` further feed positions in a row. Resolves with the first. */
  async takePositions(count: number): Promise<number> {
    return (await advance(this.transaction, count)) - count + 1
  }

  /** Appends records to the audit log, in this order. */
  async note(entries: readonly AuditEntry[]): Promise<void> {
    const { name, keyId, note } = this.author
    await this.transaction.putRows(
      AUDIT,
      entries.map(({ action, target, details, before, after }) => [
        this.at,
        encodeText(name),
        keyId === undefined ? null : encodeText(keyId),
        note === undefined ? null : encodeText(note),
        action,
        encodeText(target),
        jsonOf(details),
        jsonOf(before),
        jsonOf(after),
      ]),
    )
  }
}

/** Text that is already JSON. */
export class JsonText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** The only way to change anything: all writes go through it. */
export class ConfigWriter {
  readonly #driver: SqlDriver
  readonly #nowMs: () => number
  readonly #announcements: Announcer

  constructor(
    driver: SqlDriver,
    { nowMs, announcements }: { readonly nowMs: () => number; readonly announcements: Announcer },
  ) {
    this.#driver = driver
    this.#nowMs = nowMs
    this.#announcements = announcements
  }

  /**
   * Runs `work` as the only writer, then announces the change. `work` may be run again from the beginning. Its errors
   * are passed on, and nothing has changed then.
   */
  async change<T>(author: Author, work: (change: ConfigChange) => Promise<T>): Promise<T> {
    checkAuthor(author)
    const result = await this.#driver.transaction(async (transaction) => {
      // This must come first: the row lock makes other writers wait until this transaction is committed.
      const position = await advance(transaction, 1)
      const done = await work(new ConfigChange(transaction, { at: this.#nowMs(), author, position }))
      await transaction.notify()
      return done
    })
    this.#announcements.announce()
    return result
  }
}

async function advance(transaction: SqlTransaction, count: number): Promise<number> {
  const sql = 'UPDATE feed_head SET position = position + ? WHERE id = 1 RETURNING position'
  const [row] = await transaction.query<{ position: number }>(sql, [count])
  return row!.position
}

function jsonOf(value: unknown): string | null {
  if (value === undefined) return null
  return value instanceof JsonText ? value.text : JSON.stringify(value)
}

function checkAuthor({ name, keyId, note }: Author): void {
  checkAuthorText('name', name)
  if (keyId !== undefined) checkAuthorText('keyId', keyId)
  if (note !== undefined && typeof note !== 'string') {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: 'the note of the author is invalid',
      received: note,
      expected: 'a string',
    })
  }
}

function checkAuthorText(field: 'name' | 'keyId', value: unknown): void {
  if (typeof value === 'string' && value.length > 0 && value.length <= LONGEST_AUTHOR) return
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `"${field}" of the author is invalid`,
    received: value,
    expected: `a string of 1 to ${LONGEST_AUTHOR} characters`,
  })
}

/** Announces changes to notifiers without delaying the writer. */
export class Announcer {
  readonly #notifiers: readonly Pick<Notifier, 'announce'>[]
  readonly #inFlight = new Set<Promise<unknown>>()

  constructor(notifiers: readonly Pick<Notifier, 'announce'>[]) {
    this.#notifiers = notifiers
  }

  /** Call it after a commit. The change is made whether or not nodes are notified: polling finds it. */
  announce(): void {
    for (const notifier of this.#notifiers) {
      const told = notifier.announce().catch(() => false)
      this.#inFlight.add(told)
      void told.then(() => this.#inFlight.delete(told))
    }
  }

  /** Resolves when all announcements so far have succeeded or failed. */
  async settled(): Promise<void> {
    await Promise.all(this.#inFlight)
  }
}

/** The stored entry that a change applies to. */
export interface Found {
  /** Undefined if there is no entry. */
  readonly revision: number | undefined
  /** Its name in messages. */
  readonly what: string
}

/** Throws `SLUICE_CONFLICT` if the editor has read another revision than the stored one. */
export function checkRevision({ ifRevision }: Seen, { revision = 0, what }: Found): void {
  if (ifRevision === undefined || ifRevision === revision) return
  if (!(Number.isSafeInteger(ifRevision) && ifRevision >= 0)) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: '"ifRevision" is invalid',
      received: ifRevision,
      expected: 'the revision that was read, or 0 if there was no entry',
    })
  }
  throw new SluiceError('SLUICE_CONFLICT', {
    problem: `${what} has changed since it was read`,
    received: ifRevision,
    expected: revision === 0 ? 'revision 0: it no longer exists' : `revision ${revision}`,
    action: 'Read it again, and repeat the change if it still applies.',
  })
}
