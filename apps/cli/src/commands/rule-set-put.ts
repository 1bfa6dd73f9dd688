import type { Client } from '@sluice/client'
import type { DiffAnswer, RuleSet, RuleSetChange, StageRequest, Version } from '@sluice/contract'
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

/** A rule set that is kept as a draft, and what changes when it takes the place of the enforced one. */
export interface KeptDraft {
  readonly draft: Version
  /** Undefined when none is enforced, or the author has seen another. */
  readonly diff: DiffAnswer | undefined
}

/** Keeps a rule set as a draft that is based on what the author says to have seen, or on what is enforced now. */
export async function keepDraft(client: Client, { ruleSet, note, ifVersion }: RuleSetPut): Promise<KeptDraft> {
  const { version: enforced } = await client.call('listRateLimits', { parameters: { limit: 1 } })
  const basedOn = ifVersion ?? enforced
  const draft = await client.call('createVersion', { body: { ruleSet, basedOn, ...present({ note }) } })
  if (enforced === 0 || basedOn !== enforced) return { draft, diff: undefined }
  const diff = await client.call('diffVersions', { parameters: { number: enforced, to: draft.number } })
  return { draft, diff }
}

/**
 * Refuses to go on with a draft that takes away or changes what is enforced, when its author has not said to have seen that: it
 * may be the work of somebody else.
 */
export function refuseUnseen(
  { draft, diff }: KeptDraft,
  { ifVersion, isForced }: RuleSetPut,
  next: StageRequest,
): void {
  if (diff === undefined || isForced || ifVersion !== undefined) return
  const lost = diff.changes.filter(({ change }) => change !== 'added')
  if (lost.length === 0) return
  const { number } = draft
  const stage = next.percent === undefined ? next.stage : `${next.stage} --percent ${next.percent}`
  throw new CliError('SLUICE_CLI_WOULD_REPLACE', {
    detail: [
      `Version ${diff.from} is enforced, and the file would take away or change: ${namesOf(lost)}.`,
      `Nothing was changed; the file is kept as draft ${number}, and "sluice rules diff ${number}" shows the difference.`,
      `When that is as it should be, "sluice rules stage ${number} ${stage}" goes on with it.`,
      `To put it in one step, say which version the file was made from: --if-version ${diff.from}, if it was this one.`,
      'Where the file is the one source of the rules, such as in a pipeline, --force puts it whatever is enforced.',
    ].join(' '),
  })
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
