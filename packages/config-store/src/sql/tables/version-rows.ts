import type { RequestMatch, RuleSet } from '@sluice/core/policy'
import type { Version, VersionStage } from '../../rule-set-versions.ts'
import type { SqlSession, SqlTarget, SqlTransaction, SqlValue } from '../sql-driver.ts'
import { decodeText, encodeKey } from '../text-encoding.ts'

/** A row of the table of versions. */
export interface VersionRow {
  readonly number: number
  readonly stage: VersionStage
  readonly percent: number
  readonly based_on: number | null
  /** The version that it replaced when it was first enforced: the target of `rollback`. */
  readonly replaced: number | null
  /** When it was last enforced; null if never. */
  readonly enforced_at: number | null
  readonly created_at: number
  readonly created_by: string
  readonly note: string | null
  /** See `settingsOf`. */
  readonly settings: string
  readonly position: number
}

/** The active rows, read in one statement. */
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
    createdBy: decodeText(row.created_by),
    enforcedAt: row.enforced_at ?? undefined,
    note: row.note === null ? undefined : decodeText(row.note),
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

/** A list of a rule set that has a table of its own: one row per item, in order. */
interface Part<S extends ListedPart> {
  readonly part: S
  readonly table: string
  /** Columns to find rows by. The body holds the whole item. */
  readonly columns: readonly string[]
  readonly valuesOf: (item: Item<S>) => readonly (string | undefined)[]
}

type ListedPart = 'rules' | 'tiers' | 'exemptions' | 'denyList' | 'domains'
type Item<S extends ListedPart> = NonNullable<RuleSet[S]>[number]

const matched = ({ name, match }: { readonly name: string; readonly match: RequestMatch }): (string | undefined)[] => [
  name,
  match.resource,
  match.dimension,
]

const PARTS: { readonly [S in ListedPart]: Part<S> } = {
  rules: {
    part: 'rules',
    table: 'rules',
    columns: ['name', 'resource', 'dimension'],
    valuesOf: ({ name, resource, dimension }) => [name, resource, dimension],
  },
  tiers: { part: 'tiers', table: 'tiers', columns: ['name'], valuesOf: ({ name }) => [name] },
  exemptions: {
    part: 'exemptions',
    table: 'exemptions',
    columns: ['name', 'resource', 'dimension'],
    valuesOf: matched,
  },
  denyList: {
    part: 'denyList',
    table: 'deny_entries',
    columns: ['name', 'resource', 'dimension'],
    valuesOf: matched,
  },
  domains: { part: 'domains', table: 'domains', columns: ['name'], valuesOf: ({ domain }) => [domain] },
}

const LISTED = Object.keys(PARTS) as readonly ListedPart[]

/** The part of a rule set that is stored in the row of its version: everything except the items of its lists. */
export function settingsOf(ruleSet: RuleSet): string {
  const lists = LISTED.map((part) => [part, ruleSet[part] === undefined ? undefined : []])
  return JSON.stringify({ ...ruleSet, ...Object.fromEntries(lists) })
}

/** Inserts the items of all lists of a rule set. */
export async function writeItems(transaction: SqlTransaction, version: number, ruleSet: RuleSet): Promise<void> {
  for (const part of LISTED) {
    const rows = rowsOf(PARTS[part] as Part<ListedPart>, version, ruleSet)
    if (rows.length > 0) await transaction.putRows(targetOf(PARTS[part]), rows)
  }
}

/** Reads the rule set of a version. */
export async function readRuleSet(session: SqlSession, version: number, settings: string): Promise<RuleSet> {
  const ruleSet: Record<string, unknown> = JSON.parse(settings)
  for (const { part, table } of Object.values(PARTS)) {
    if (ruleSet[part] === undefined) continue
    const sql = `SELECT body FROM ${table} WHERE version = ? ORDER BY place`
    const rows = await session.query<{ body: string }>(sql, [version])
    ruleSet[part] = rows.map(({ body }) => JSON.parse(body))
  }
  return ruleSet as unknown as RuleSet
}

function rowsOf<S extends ListedPart>({ part, valuesOf }: Part<S>, version: number, ruleSet: RuleSet): SqlValue[][] {
  const items: readonly Item<S>[] = ruleSet[part] ?? []
  return items.map((item, place) => [
    version,
    place,
    ...valuesOf(item).map((value) => (value === undefined ? null : encodeKey(value))),
    JSON.stringify(item),
  ])
}

function targetOf({ table, columns }: Pick<Part<ListedPart>, 'table' | 'columns'>): SqlTarget {
  return {
    table,
    columns: [
      { name: 'version', type: 'bigint' },
      { name: 'place', type: 'bigint' },
      ...columns.map((name) => ({ name, type: 'text' as const })),
      { name: 'body', type: 'text' },
    ],
    key: [],
  }
}
