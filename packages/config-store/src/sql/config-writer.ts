import { SluiceError } from '@sluice/core'
import type { Notifier } from '../config-store.ts'
import type { Author, Seen } from '../entries.ts'
import type { SqlDriver, SqlTarget, SqlTransaction } from './sql-driver.ts'
import { encodeText } from './text-encoding.ts'

const LONGEST_AUTHOR = 200

/** What is noted about a change. */
export interface AuditEntry {
  readonly action: string
  readonly target: string
  readonly details?: unknown
  /** Without secrets; a {@link JsonText} is taken as it is. */
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

/** One change in the making: rows, audit records and places in the feed, all of them or none. */
export class ConfigChange {
  readonly transaction: SqlTransaction
  /** Milliseconds since 1970. */
  readonly at: number
  readonly author: Author
  /** The place in the feed that this change has for itself. */
  readonly position: number

  constructor(transaction: SqlTransaction, { at, author, position }: Pick<ConfigChange, 'at' | 'author' | 'position'>) {
    this.transaction = transaction
    this.at = at
    this.author = author
    this.position = position
  }

  /** Takes so many further places in the feed, in a row, and resolves with the first. */
  async takePositions(count: number): Promise<number> {
    return (await advance(this.transaction, count)) - count + 1
  }

  /** Adds records to the audit log, in this order. */
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

/** JSON that was made already. */
export class JsonText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** The only way in which anything is changed. */
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
   * Runs `work` while nobody else writes, and then tells everybody. It may be run again from the beginning. What it throws is
   * passed on, and nothing was changed.
   */
  async change<T>(author: Author, work: (change: ConfigChange) => Promise<T>): Promise<T> {
    checkAuthor(author)
    const result = await this.#driver.transaction(async (transaction) => {
      // First of all, because it makes whoever else wants to write wait until this is committed.
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
      problem: 'the note of the author cannot be used',
      received: note,
      expected: 'a text',
    })
  }
}

function checkAuthorText(field: 'name' | 'keyId', value: unknown): void {
  if (typeof value === 'string' && value.length > 0 && value.length <= LONGEST_AUTHOR) return
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `"${field}" of the author cannot be used`,
    received: value,
    expected: `a string of 1 to ${LONGEST_AUTHOR} characters`,
  })
}

/** Tells notifiers of changes, without making who changed something wait for it. */
export class Announcer {
  readonly #notifiers: readonly Pick<Notifier, 'announce'>[]
  readonly #underWay = new Set<Promise<unknown>>()

  constructor(notifiers: readonly Pick<Notifier, 'announce'>[]) {
    this.#notifiers = notifiers
  }

  /** After a change was committed: whether or not anybody is told, it was made, and polling finds it. */
  announce(): void {
    for (const notifier of this.#notifiers) {
      const told = notifier.announce().catch(() => false)
      this.#underWay.add(told)
      void told.then(() => this.#underWay.delete(told))
    }
  }

  /** Resolves when everybody was told, or could not be, of all that was changed until now. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay)
  }
}

/** What is there. */
export interface Found {
  /** Undefined when nothing is. */
  readonly revision: number | undefined
  /** What it is called in a message. */
  readonly what: string
}

/** Throws `SLUICE_CONFLICT` when an editor has seen something else than what is there. */
export function checkRevision({ ifRevision }: Seen, { revision = 0, what }: Found): void {
  if (ifRevision === undefined || ifRevision === revision) return
  if (!(Number.isSafeInteger(ifRevision) && ifRevision >= 0)) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: '"ifRevision" cannot be used',
      received: ifRevision,
      expected: 'the revision that was read, or 0 when nothing was there',
    })
  }
  throw new SluiceError('SLUICE_CONFLICT', {
    problem: `${what} was changed meanwhile`,
    received: ifRevision,
    expected: revision === 0 ? 'revision 0: it is not there any more' : `revision ${revision}`,
    action: 'Read it again, and repeat the change if it still applies.',
  })
}
