import { SluiceError } from '@sluice/core'
import type { Author, Page } from '../../config-entries.ts'
import type { AuditLog, AuditRecord, ExternalAction } from '../../config-store.ts'
import type { ConfigWriter } from '../config-writer.ts'
import type { SqlSession, SqlValue } from '../sql-driver.ts'
import { pageLimit, pageOf, pageStart } from '../sql-page.ts'
import { decodeText, encodeText } from '../text-encoding.ts'

type AuditFilter = NonNullable<Parameters<AuditLog['list']>[0]>

interface AuditRow {
  readonly number: number
  readonly at: number
  readonly author: string
  readonly key_id: string | null
  readonly note: string | null
  readonly action: string
  readonly target: string
  readonly details: string | null
  readonly before: string | null
  readonly after: string | null
}

/** The audit log. `ConfigWriter` writes it, in the order of actions. */
export class AuditTable implements AuditLog {
  readonly #session: SqlSession
  readonly #writer: ConfigWriter

  constructor(session: SqlSession, writer: ConfigWriter) {
    this.#session = session
    this.#writer = writer
  }

  async add({ action, target, details }: ExternalAction, author: Author): Promise<void> {
    await this.#writer.change(author, (change) => change.note([{ action, target, details }]))
  }

  async list(filter: AuditFilter = {}): Promise<Page<AuditRecord>> {
    const limit = pageLimit(filter)
    const { conditions, values } = conditionsOf(filter)
    const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
    const rows = await this.#session.query<AuditRow>(`SELECT * FROM audit ${where} ORDER BY number DESC LIMIT ?`, [
      ...values,
      limit + 1,
    ])
    return pageOf(rows, limit, { itemOf: recordOf, cursorOf: (row) => [row.number] })
  }
}

function conditionsOf(filter: AuditFilter): { conditions: readonly string[]; values: readonly SqlValue[] } {
  const { by, keyId, action, since } = filter
  if (since !== undefined && !Number.isFinite(since)) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: '"since" of the audit log is invalid',
      received: since,
      expected: 'milliseconds since 1970',
    })
  }
  const conditions: string[] = []
  const values: SqlValue[] = []
  const add = (condition: string, value: SqlValue | undefined): void => {
    if (value === undefined) return
    conditions.push(condition)
    values.push(value)
  }
  add('number < ?', pageStart<number>(filter, ['number'])?.[0])
  add('author = ?', by === undefined ? undefined : encodeText(by))
  add('key_id = ?', keyId === undefined ? undefined : encodeText(keyId))
  add('action = ?', action === undefined ? undefined : encodeText(action))
  add('at >= ?', since === undefined ? undefined : Math.ceil(since))
  return { conditions, values }
}

function recordOf(row: AuditRow): AuditRecord {
  const { number, at, author, key_id: keyId, note, action, target, details, before, after } = row
  return {
    number,
    at,
    by: decodeText(author),
    keyId: keyId === null ? undefined : decodeText(keyId),
    note: note === null ? undefined : decodeText(note),
    action,
    target: decodeText(target),
    details: details === null ? undefined : JSON.parse(details),
    before: before === null ? undefined : JSON.parse(before),
    after: after === null ? undefined : JSON.parse(after),
  }
}

/** Characters that make a value ambiguous: whitespace, quotes, and invisible characters. */
const UNCLEAR = /[\s"\\\p{C}]/u
const INVISIBLE = /[^\S ]|\p{C}/gu

/**
 * Formats a value for the `target` of an audit record: unchanged, or quoted as in JSON if it is ambiguous. So `user:"a
 * tenant:b"` names one caller, and `user:a tenant:b` two.
 */
export function auditName(value: string): string {
  if (value !== '' && !UNCLEAR.test(value)) return value
  return JSON.stringify(value).replaceAll(INVISIBLE, escaped)
}

function escaped(text: string): string {
  return Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join(
    '',
  )
}
