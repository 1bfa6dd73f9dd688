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
        ? '--percent is missing: pass the share of callers, 0 to 100.'
        : '--percent needs the stage percent.',
    )
  }
  return stage === 'draft' ? 'draft' : { stage: stage as StageRequest['stage'], ...present({ percent, note }) }
}

/** Moves a new draft on. Retires it when the service rejects that, so that nothing is left to be enforced by mistake. */
export async function staged(client: Client, draft: Version, stage: StageRequest | 'draft'): Promise<Version> {
  if (stage === 'draft') return draft
  const parameters = { number: draft.number }
  try {
    return await client.call('stageVersion', { parameters, body: stage })
  } catch (error) {
    if (!isClientError(error)) throw error
    const problem = `${error.code}: ${error.detail}`
    // Without an answer it may have been enforced, and is not to be taken back.
    const isRejected = error.status !== undefined && error.status < 500
    const isRetired = isRejected && (await retire(client, draft.number))
    const next = isRetired
      ? `Version ${draft.number} was retired; nothing else was changed.`
      : `Version ${draft.number} is stored: "sluice rules versions" shows its stage, "sluice rules stage ${draft.number} ${stage.stage}" tries again.`
    throw new CliError('SLUICE_CLI_NOT_STAGED', { detail: `${problem} ${next}`, cause: error })
  }
}

async function retire(client: Client, number: number): Promise<boolean> {
  try {
    await client.call('stageVersion', { parameters: { number }, body: { stage: 'retired' } })
    return true
  } catch (error) {
    if (!isClientError(error)) throw error
    return false
  }
}

/** A version that was just made, for people. */
export function madeText(version: Version): string {
  const { number, stage } = version
  const done =
    stage === 'enforce' ? `Created and enforced version ${number}.` : `Created version ${number} as ${stage}.`
  return `${done}\n${versionText(version)}`
}

/** A version, for people. */
export function versionText(version: Version): string {
  const { number, stage, percent, basedOn, createdAt, createdBy, note } = version
  return facts([
    ['version', number],
    ['stage', stage === 'percent' ? `percent: ${percent} %` : stage],
    ['based on', basedOn],
    ['created', `${instantText(createdAt)} by ${createdBy}`],
    ['note', note],
  ])
}
