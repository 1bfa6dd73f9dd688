import type { Client } from '@sluice/client'
import { isClientError } from '@sluice/client'
import type { StageRequest, Version } from '@sluice/contract'
import { CliError, usageError } from '../cli-error.ts'
import { facts, instantText } from '../output/table.ts'
import { present } from '../parsing/caller-flags.ts'
import type { Flag, GivenFlags } from '../parsing/flag.ts'
import { choice, flag } from '../parsing/flag.ts'
import { NOTE_FLAG } from './note-flag.ts'

/** What becomes of a new version. */
export const STAGE_FLAGS: {
  readonly stage: Flag<'text', 'draft' | 'shadow' | 'percent' | 'enforce'>
  readonly percent: Flag<'number'>
  readonly note: Flag<'text'>
} = {
  stage: choice(
    ['draft', 'shadow', 'percent', 'enforce'],
    'draft: kept without effect; shadow: measured; percent: enforced for a share of the callers; enforce: for all.',
  ),
  percent: flag('number', '<0-100>', 'The share, with the stage percent.'),
  note: NOTE_FLAG,
}

/** What becomes of a version: `draft`, or the stage that it moves on to. */
export function stageOf({
  stage,
  percent,
  note,
}: Pick<GivenFlags<typeof STAGE_FLAGS>, 'percent' | 'note'> & { stage: string }): StageRequest | 'draft' {
  if ((stage === 'percent') !== (percent !== undefined)) {
    throw usageError(
      stage === 'percent'
        ? '--percent is missing: which share of the callers?'
        : '--percent goes with the stage percent.',
    )
  }
  return stage === 'draft' ? 'draft' : { stage: stage as StageRequest['stage'], ...present({ percent, note }) }
}

/** Moves a draft on. When that fails, says that the draft is there. */
export async function staged(client: Client, draft: Version, stage: StageRequest | 'draft'): Promise<Version> {
  if (stage === 'draft') return draft
  try {
    return await client.call('stageVersion', { parameters: { number: draft.number }, body: stage })
  } catch (error) {
    if (!isClientError(error)) throw error
    const problem = `${error.code}: ${error.detail}`
    const next = `Version ${draft.number} is kept as a draft: "sluice rules stage ${draft.number} ${stage.stage}" tries again.`
    throw new CliError('SLUICE_CLI_NOT_STAGED', { detail: `${problem} ${next}`, cause: error })
  }
}

/** A version, for people. */
export function versionText(version: Version): string {
  const { number, stage, percent, basedOn, createdAt, createdBy, note } = version
  return facts([
    ['version', number],
    ['stage', stage === 'percent' ? `percent: ${percent} %` : stage],
    ['based on', basedOn],
    ['made', `${instantText(createdAt)} by ${createdBy}`],
    ['note', note],
  ])
}
