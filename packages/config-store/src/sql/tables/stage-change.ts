import { SluiceError } from '@sluice/core'
import type { StageChange } from '../../versions.ts'
import type { RowsInForce, VersionRow } from './version-rows.ts'

/** Throws `SLUICE_INVALID_OPTION` for a stage that cannot be asked for. */
export function checkStage(change: StageChange): void {
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

/** Throws `SLUICE_CONFLICT` when a version cannot be moved as things are. */
export function checkMove(row: VersionRow, { stage }: StageChange, { enforced, candidate }: RowsInForce): void {
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
      `version ${row.number} was based on ${named(row.based_on)}, and ${named(now)} is enforced by now`,
      row.enforced_at === null
        ? 'Look at the difference, and make a version out of the one that is enforced.'
        : 'To go back to it, use rollback.',
    )
  }
}

function named(number: number | null): string {
  return number === null ? 'none' : `version ${number}`
}

function conflict(problem: string, action: string): SluiceError {
  return new SluiceError('SLUICE_CONFLICT', { problem, action })
}
