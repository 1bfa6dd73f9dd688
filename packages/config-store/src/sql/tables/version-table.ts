import { SluiceError } from '@sluice/core'
import { assertRuleSet, diffRuleSets, type RuleSet, type RuleSetChange } from '@sluice/core/policy'
import type { Author, Page, PageRequest, Seen } from '../../config-entries.ts'
import type {
  RollbackOptions,
  StageChange,
  Version,
  VersionApproval,
  VersionContent,
  VersionStage,
  VersionTable,
} from '../../rule-set-versions.ts'
import { type ConfigChange, type ConfigWriter, checkRevision } from '../config-writer.ts'
import type { SqlDriver, SqlSession } from '../sql-driver.ts'
import { pageLimit, pageOf, pageStart } from '../sql-page.ts'
import { encodeText } from '../text-encoding.ts'
import {
  type RowsInForce,
  readInForce,
  readRuleSet,
  readVersion,
  settingsOf,
  type VersionRow,
  versionOf,
  writeItems,
} from './version-rows.ts'

/** The rule set before any version is enforced. */
const NO_RULES: RuleSet = { rules: [] }

/** The versions of the rule set. */
export class SqlVersionTable implements VersionTable {
  readonly #driver: SqlDriver
  readonly #writer: ConfigWriter

  constructor(driver: SqlDriver, writer: ConfigWriter) {
    this.#driver = driver
    this.#writer = writer
  }

  async create(ruleSet: RuleSet, author: Author, basedOn: number): Promise<Version> {
    checkBase(basedOn)
    const checked = assertRuleSet(ruleSet)
    return await this.#writer.change(author, async (change) => {
      const row = await insert(change, checked, await existingBase(change, basedOn))
      await change.note([{ action: 'version.create', target: named(row), after: versionOf(row) }])
      return versionOf(row)
    })
  }

  async get(number: number): Promise<VersionContent | undefined> {
    const row = await readVersion(this.#driver, number)
    return row === undefined ? undefined : await contentOf(this.#driver, row)
  }

  async list(page: PageRequest = {}): Promise<Page<Version>> {
    const limit = pageLimit(page)
    const [below] = pageStart<number>(page, ['number']) ?? []
    const rows = await this.#driver.query<VersionRow>(
      `SELECT * FROM versions ${below === undefined ? '' : 'WHERE number < ?'} ORDER BY number DESC LIMIT ?`,
      below === undefined ? [limit + 1] : [below, limit + 1],
    )
    return pageOf(rows, limit, { itemOf: versionOf, cursorOf: (row) => [row.number] })
  }

  async current(): Promise<{ readonly enforced: Version | undefined; readonly candidate: Version | undefined }> {
    const { enforced, candidate } = await readInForce(this.#driver)
    return { enforced: enforced && versionOf(enforced), candidate: candidate && versionOf(candidate) }
  }

  async stage(
    number: number,
    stage: StageChange & Seen & { readonly approve?: VersionApproval },
    author: Author,
  ): Promise<Version> {
    checkStage(stage)
    return await this.#writer.change(author, async (change) => {
      const row = await existing(change.transaction, number)
      const inForce = await readInForce(change.transaction)
      checkRevision(stage, { revision: row.position, what: named(row) })
      checkMove(row, stage, inForce)
      if (stage.stage !== 'retired') await approved(stage.approve, change, { row, enforced: inForce.enforced })
      const after =
        stage.stage === 'enforce'
          ? await enforce(change, row, { instead: inForce.enforced, isForward: true })
          : await move(change, row, { ...stage, position: change.position })
      await change.note([
        { action: 'version.stage', target: named(row), before: versionOf(row), after: versionOf(after) },
      ])
      return versionOf(after)
    })
  }

  async rollback(author: Author, { to, ifVersion, approve }: RollbackOptions = {}): Promise<Version> {
    return await this.#writer.change(author, async (change) => {
      const { enforced, candidate } = await readInForce(change.transaction)
      checkEnforced(ifVersion, enforced?.number ?? 0)
      const row = await existing(change.transaction, to ?? replacedBy(enforced))
      if (row.enforced_at === null) throw neverEnforced(row)
      await approved(approve, change, { row, enforced })
      if (candidate !== undefined && candidate.number !== row.number) await retire(change, candidate)
      const after = await enforce(change, row, { instead: enforced, isForward: false })
      await change.note([
        {
          action: 'version.rollback',
          target: named(row),
          before: enforced && versionOf(enforced),
          after: versionOf(after),
        },
      ])
      return versionOf(after)
    })
  }

  async edit(edit: (ruleSet: RuleSet) => RuleSet, author: Author, ifVersion?: number): Promise<Version> {
    return await this.#writer.change(author, async (change) => {
      const { enforced } = await readInForce(change.transaction)
      checkEnforced(ifVersion, enforced?.number ?? 0)
      const before = enforced === undefined ? NO_RULES : await ruleSetOf(change.transaction, enforced)
      const row = await insert(change, assertRuleSet(edit(before)), enforced?.number ?? null)
      const after = await enforce(change, row, { instead: enforced, isForward: true })
      await change.note([
        {
          action: 'version.edit',
          target: named(row),
          before: enforced && versionOf(enforced),
          after: versionOf(after),
        },
      ])
      return versionOf(after)
    })
  }

  async diff(from: number, to: number): Promise<readonly RuleSetChange[]> {
    const [before, after] = await Promise.all([existing(this.#driver, from), existing(this.#driver, to)])
    return diffRuleSets(await ruleSetOf(this.#driver, before), await ruleSetOf(this.#driver, after))
  }
}

/** A version with its rule set. */
export async function contentOf(session: SqlSession, row: VersionRow): Promise<VersionContent> {
  return { ...versionOf(row), ruleSet: await ruleSetOf(session, row) }
}

function ruleSetOf(session: SqlSession, { number, settings }: VersionRow): Promise<RuleSet> {
  return readRuleSet(session, number, settings)
}

/** Calls `approve`, if given, with the rule set of a version and the enforced one. */
async function approved(
  approve: VersionApproval | undefined,
  { transaction }: ConfigChange,
  { row, enforced }: { readonly row: VersionRow; readonly enforced: VersionRow | undefined },
): Promise<void> {
  if (approve === undefined) return
  approve(await ruleSetOf(transaction, row), enforced === undefined ? NO_RULES : await ruleSetOf(transaction, enforced))
}

async function insert(change: ConfigChange, ruleSet: RuleSet, basedOn: number | null): Promise<VersionRow> {
  const { transaction, author, at } = change
  const [row] = await transaction.query<VersionRow>(
    `INSERT INTO versions (number, stage, percent, based_on, created_at, created_by, note, settings, position)
    SELECT COALESCE(max(number), 0) + 1, 'draft', 0, CAST(? AS BIGINT), ?, ?, ?, ?, ? FROM versions RETURNING *`,
    [
      basedOn,
      at,
      encodeText(author.name),
      author.note === undefined ? null : encodeText(author.note),
      settingsOf(ruleSet),
      change.position,
    ],
  )
  await writeItems(transaction, row!.number, ruleSet)
  return row!
}

/** Enforces a version and retires the one it replaces. */
async function enforce(
  change: ConfigChange,
  row: VersionRow,
  { instead, isForward }: { readonly instead: VersionRow | undefined; readonly isForward: boolean },
): Promise<VersionRow> {
  if (instead !== undefined && instead.number !== row.number) await retire(change, instead)
  const isSame = instead?.number === row.number
  const replaced = isForward && !isSame ? (instead?.number ?? null) : row.replaced
  await change.transaction.query('UPDATE versions SET replaced = ?, enforced_at = ? WHERE number = ?', [
    replaced,
    change.at,
    row.number,
  ])
  return await move(change, row, { stage: 'enforce', position: change.position })
}

/** Uses a feed position of its own: positions are unique per row. */
async function retire(change: ConfigChange, row: VersionRow): Promise<void> {
  await move(change, row, { stage: 'retired', position: await change.takePositions(1) })
}

async function move(
  { transaction }: ConfigChange,
  { number }: VersionRow,
  { stage, percent = 0, position }: { stage: VersionStage; percent?: number; position: number },
): Promise<VersionRow> {
  const [row] = await transaction.query<VersionRow>(
    'UPDATE versions SET stage = ?, percent = ?, position = ? WHERE number = ? RETURNING *',
    [stage, percent, position, number],
  )
  return row!
}

async function existingBase({ transaction }: ConfigChange, basedOn: number): Promise<number | null> {
  return basedOn === 0 ? null : (await existing(transaction, basedOn)).number
}

async function existing(session: SqlSession, number: number): Promise<VersionRow> {
  const row = Number.isSafeInteger(number) ? await readVersion(session, number) : undefined
  if (row !== undefined) return row
  throw new SluiceError('SLUICE_NOT_FOUND', { problem: 'there is no such version', received: number })
}

function replacedBy(enforced: VersionRow | undefined): number {
  const replaced = enforced?.replaced ?? undefined
  if (replaced !== undefined) return replaced
  throw new SluiceError('SLUICE_NOT_FOUND', {
    problem:
      enforced === undefined
        ? 'there is no version to go back to: none is enforced'
        : `there is no version to go back to: ${named(enforced)} is the first that was enforced`,
  })
}

function neverEnforced(row: VersionRow): SluiceError {
  return new SluiceError('SLUICE_CONFLICT', {
    problem: `${named(row)} was never enforced, so there is no way back to it`,
    action: 'Move it on by its stages instead.',
  })
}

/** A draft without a base could silently replace changes that its author has not seen. */
function checkBase(basedOn: unknown): void {
  if (basedOn !== undefined) return
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'a draft does not say which enforced version it is based on',
    received: basedOn,
    expected: 'the number of the version that its author has seen enforced, 0 when none was',
    action: 'Pass what "current()" said when its author began.',
  })
}

function checkEnforced(ifVersion: number | undefined, enforced: number): void {
  if (ifVersion === undefined || ifVersion === enforced) return
  throw new SluiceError('SLUICE_CONFLICT', {
    problem: 'another version is enforced by now',
    received: ifVersion,
    expected: enforced === 0 ? 'version 0: none is enforced' : `version ${enforced}`,
    action: 'Look at what has changed, and repeat it if it still applies.',
  })
}

function named({ number }: VersionRow): string {
  return `version ${number}`
}

/** Throws `SLUICE_INVALID_OPTION` for an invalid stage. */
function checkStage(change: StageChange): void {
  const { stage } = change
  if (stage === 'shadow' || stage === 'enforce' || stage === 'retired') return
  if (stage !== 'percent') {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: 'a version cannot be moved to that stage',
      received: stage,
      expected: 'shadow, percent, enforce or retired',
    })
  }
  if (change.percent >= 0 && change.percent <= 100) return
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: '"percent" of a stage cannot be used',
    received: change.percent,
    expected: 'a share of the callers, 0 to 100',
  })
}

/** Throws `SLUICE_CONFLICT` if a version cannot be moved to this stage now. */
function checkMove(row: VersionRow, { stage }: StageChange, { enforced, candidate }: RowsInForce): void {
  if (row.number === enforced?.number && stage !== 'enforce') {
    throw conflict(`version ${row.number} is enforced`, 'Enforce another one, or roll back, to take it out of force.')
  }
  const isCandidate = stage === 'shadow' || stage === 'percent'
  if (isCandidate && candidate !== undefined && candidate.number !== row.number) {
    throw conflict(
      `version ${candidate.number} is the candidate already`,
      `Enforce or retire version ${candidate.number} first.`,
    )
  }
  if (stage !== 'enforce' || row.number === enforced?.number) return
  const now = enforced?.number ?? null
  if (row.based_on !== now) {
    throw conflict(
      `version ${row.number} was based on ${versionLabel(row.based_on)}, and ${versionLabel(now)} is enforced by now`,
      row.enforced_at === null
        ? 'Look at the difference, and make a version out of the one that is enforced.'
        : 'To go back to it, use rollback.',
    )
  }
}

function versionLabel(number: number | null): string {
  return number === null ? 'none' : `version ${number}`
}

function conflict(problem: string, action: string): SluiceError {
  return new SluiceError('SLUICE_CONFLICT', { problem, action })
}
