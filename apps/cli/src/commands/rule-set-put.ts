import type { Client } from '@sluice/client'
import type { DiffAnswer, RuleSet, RuleSetChange, StageRequest, Version } from '@sluice/contract'
import type { RuleSet as CoreRuleSet } from '@sluice/core'
import { CliError } from '../cli-error.ts'
import { present } from '../parsing/caller-flags.ts'

/** Changes that are named in a refusal; the others are counted. */
const MOST_NAMED = 10

/** How a whole rule set is put. */
export interface RuleSetPut {
  readonly ruleSet: RuleSet
  readonly note: string | undefined
  /** The enforced version that the author has seen; undefined when that was not said. */
  readonly ifVersion: number | undefined
  /** Whether it may take the place of what its author has not seen. */
  readonly isForced: boolean
}

/** A rule set that was stored as a draft, and what changes when it replaces the enforced one. */
export interface StoredDraft {
  readonly draft: Version
  /** Undefined when none is enforced. */
  readonly diff: DiffAnswer | undefined
}

/**
 * Stores a rule set as a draft, based on the enforced version. Stores nothing, and throws, when it would be rejected: when
 * another version is enforced than the author has seen, or, with a `next` stage, when it removes or changes something enforced
 * that the author has not said to have seen.
 */
export async function storeDraft(
  client: Client,
  { ruleSet, note, ifVersion, isForced }: RuleSetPut,
  next: StageRequest | 'draft',
): Promise<StoredDraft> {
  const { version: enforced } = await client.call('listRateLimits', { parameters: { limit: 1 } })
  if (ifVersion !== undefined && ifVersion !== enforced) throw wouldReplace(seenAnother(ifVersion, enforced))
  const isSeen = isForced || ifVersion !== undefined || next === 'draft'
  if (enforced > 0 && !isSeen) await refuseUnseen(client, ruleSet, enforced)
  const draft = await client.call('createVersion', { body: { ruleSet, basedOn: enforced, ...present({ note }) } })
  if (enforced === 0) return { draft, diff: undefined }
  const diff = await client.call('diffVersions', { parameters: { number: enforced, to: draft.number } })
  return { draft, diff }
}

async function refuseUnseen(client: Client, ruleSet: RuleSet, enforced: number): Promise<void> {
  const { checkRuleSet, diffRuleSets } = await import('@sluice/core')
  // The service lists what is wrong with it, and stores nothing.
  if (checkRuleSet(ruleSet).length > 0) return
  const current = await client.call('getVersion', { parameters: { number: enforced } })
  const changes = diffRuleSets(current.ruleSet as CoreRuleSet, ruleSet as CoreRuleSet) as readonly RuleSetChange[]
  const lost = changes.filter(({ change }) => change !== 'added')
  if (lost.length === 0) return
  throw wouldReplace(
    [
      `Version ${enforced} is enforced, and the file would remove or change: ${namesOf(lost)}. Nothing was stored.`,
      `If the file was made from version ${enforced}, repeat with --if-version ${enforced}.`,
      'If the file is the only source of the rules, such as in a pipeline, use --force.',
      'To review the difference first, use --stage draft and "sluice rules diff".',
    ].join('\n  '),
  )
}

function seenAnother(ifVersion: number, enforced: number): string {
  const now = enforced === 0 ? 'No version is enforced' : `Version ${enforced} is enforced`
  return `${now}, expected version ${ifVersion} (--if-version). Nothing was stored. "sluice rules get" shows the enforced rules: add your change to them and repeat.`
}

function wouldReplace(detail: string): CliError {
  return new CliError('SLUICE_CLI_WOULD_REPLACE', { detail })
}

/** What changed, in one line. */
export function changesText({ from, to, changes }: DiffAnswer): string {
  const counts = (['added', 'changed', 'removed'] as const).map(
    (kind) => `${changes.filter(({ change }) => change === kind).length} ${kind}`,
  )
  return `Compared with version ${from}: ${counts.join(', ')}. "sluice rules diff ${from} ${to}" shows it.`
}

function namesOf(changes: readonly RuleSetChange[]): string {
  const named = changes
    .slice(0, MOST_NAMED)
    .map(({ change, part, name }) => `${name === '' ? part : `${part} ${name}`} (${change})`)
  const others = changes.length - named.length
  return `${named.join(', ')}${others === 0 ? '' : ` and ${others} more`}`
}
