import type { Client } from '@sluice/client'
import type { DiffAnswer, RateLimitsRequest, RuleSet, RuleSetChange, StageRequest, Version } from '@sluice/contract'
import type { RuleSet as CoreRuleSet } from '@sluice/core'
import type { GivenFlags } from '../command-line/arguments.ts'
import { needed, toggle } from '../command-line/arguments.ts'
import type { Command, CommandResult } from '../command-line/command.ts'
import { command } from '../command-line/command.ts'
import { IF_VERSION_FLAG, present } from '../command-line/shared-flags.ts'
import { invalidFile, parseDocumentText } from '../files/document.ts'
import { CliError, usageError } from '../output/cli-error.ts'
import { countOf, table } from '../output/text.ts'
import { RULE_TITLES, ruleRows } from './rules.ts'
import { madeText, STAGE_FLAGS, staged, stageOf } from './versions.ts'

const FLAGS = {
  ...STAGE_FLAGS,
  'if-version': IF_VERSION_FLAG,
  force: toggle('Put a whole rule set whatever is enforced now.'),
} as const

/** Sets rules from a file. */
export const rulesPutCommand: Command = command({
  name: 'rules put',
  summary: 'Set rules from a file',
  description:
    'A file of YAML or JSON with "resource" and "rules" sets all rules of that resource, at once. One with the "rules" of all resources, and tiers, exemptions and so on, becomes a version of the whole rule set, which is enforced unless --stage says otherwise. It is checked as a whole; everything that is wrong is listed. A whole rule set that takes away or changes something that is enforced is put only with --if-version, which names the version it was made from, or with --force. A file that is rejected is not stored. With --json: resource, rules, version, and replaced where there were rules; or the version.',
  args: { file: needed('The file; - for standard input.') },
  flags: FLAGS,
  examples: [
    'rules put orders.yaml',
    'rules put sluice.yaml --if-version 12 --stage percent --percent 10 --note "try it on some"',
    'rules put sluice.yaml --force --note "pipeline 4711"',
  ],
  asksService: true,
  run: async ({ args: { file }, flags }, { client, readText }) => {
    const document = parseDocumentText(await readText(file), file)
    if (typeof document !== 'object' || document === null || !('rules' in document)) {
      throw invalidFile(file, 'there are no "rules" in it; expected those of a "resource", or a whole rule set.')
    }
    return 'resource' in document
      ? await putResource(client, document as RateLimitsRequest, flags)
      : await putRuleSet(client, document as RuleSet, flags)
  },
})

async function putResource(
  client: Client,
  document: RateLimitsRequest,
  flags: GivenFlags<typeof FLAGS>,
): Promise<CommandResult> {
  const { stage, percent, note, force, 'if-version': ifMatch } = flags
  if (force) throw usageError('Rules of one resource are put without --force; it goes with a whole rule set.')
  if ((stage ?? 'enforce') !== 'enforce' || percent !== undefined) {
    throw usageError('Rules of one resource are enforced at once; --stage and --percent go with a whole rule set.')
  }
  const value = await client.call('putRateLimits', { body: { ...document, ...present({ note }) }, ifMatch })
  const count = countOf(value.rules.length, 'rule')
  const text = `Set ${count} for ${value.resource}, enforced as version ${value.version}.`
  const { resource, replaced } = value
  if (replaced === undefined) return { value, text }
  return { value, text: `${text}\nReplaced:\n${table(RULE_TITLES, ruleRows({ resource, rules: replaced }))}` }
}

async function putRuleSet(client: Client, ruleSet: RuleSet, flags: GivenFlags<typeof FLAGS>): Promise<CommandResult> {
  const { stage = 'enforce', note, force: isForced, 'if-version': ifVersion } = flags
  if (isForced && ifVersion !== undefined) throw usageError('Pass --if-version or --force, not both.')
  const next = stageOf({ ...flags, stage })
  const put = { ruleSet, note, ifVersion, isForced }
  const { draft, diff } = await storeDraft(client, put, next)
  const value = await staged(client, draft, next)
  return { value, text: diff === undefined ? madeText(value) : `${madeText(value)}\n${changesText(diff)}` }
}

/** Changes that are named in a refusal; the others are counted. */
const MOST_NAMED = 10

/** How a whole rule set is put. */
interface RuleSetPut {
  readonly ruleSet: RuleSet
  readonly note: string | undefined
  /** The enforced version that the author has seen; undefined when that was not said. */
  readonly ifVersion: number | undefined
  /** Whether it may take the place of what its author has not seen. */
  readonly isForced: boolean
}

/** A rule set that was stored as a draft, and what changes when it replaces the enforced one. */
interface StoredDraft {
  readonly draft: Version
  /** Undefined when none is enforced. */
  readonly diff: DiffAnswer | undefined
}

/**
 * Stores a rule set as a draft, based on the enforced version. Stores nothing, and throws, when it would be rejected: when
 * another version is enforced than the author has seen, or, with a `next` stage, when it removes or changes something enforced
 * that the author has not said to have seen.
 */
async function storeDraft(
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
function changesText({ from, to, changes }: DiffAnswer): string {
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
