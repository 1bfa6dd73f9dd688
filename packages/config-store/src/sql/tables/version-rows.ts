import type { Version, VersionStage } from '../../versions.ts'
import type { SqlSession } from '../sql-driver.ts'
import { originalText } from '../text-encoding.ts'

/** A version as it is in its table. */
export interface VersionRow {
  readonly number: number
  readonly stage: VersionStage
  readonly percent: number
  readonly based_on: number | null
  /** The version whose place it took when it was first enforced: where `rollback` goes back to. */
  readonly replaced: number | null
  /** When it was last enforced; null when it never was. */
  readonly enforced_at: number | null
  readonly created_at: number
  readonly created_by: string
  readonly note: string | null
  /** See `settingsOf`. */
  readonly settings: string
  readonly position: number
}

/** The rows that have an effect, read at one instant. */
export interface RowsInForce {
  readonly enforced: VersionRow | undefined
  readonly candidate: VersionRow | undefined
}

export function versionOf(row: VersionRow): Version {
  return {
    number: row.number,
    stage: row.stage,
    percent: row.percent,
    basedOn: row.based_on ?? undefined,
    createdAt: row.created_at,
    createdBy: originalText(row.created_by),
    note: row.note === null ? undefined : originalText(row.note),
    revision: row.position,
  }
}

export async function readVersion(session: SqlSession, number: number): Promise<VersionRow | undefined> {
  return (await session.query<VersionRow>('SELECT * FROM versions WHERE number = ?', [number]))[0]
}

export async function readInForce(session: SqlSession): Promise<RowsInForce> {
  const rows = await session.query<VersionRow>(
    "SELECT * FROM versions WHERE stage = 'enforce' OR stage = 'shadow' OR stage = 'percent'",
  )
  return {
    enforced: rows.find(({ stage }) => stage === 'enforce'),
    candidate: rows.find(({ stage }) => stage !== 'enforce'),
  }
}
