import type { Client } from '@sluice/client'
import type { DiffAnswer, RateLimitsRequest, RuleSet, RuleSetChange, StageRequest, Version } from '@sluice/contract'
import type { RuleSet as CoreRuleSet } from '@sluice/core/policy'
import type { Command, CommandResult, GivenFlags } from '../../command-line/command.ts'
import { command, needed, toggle } from '../../command-line/command.ts'
import { IF_VERSION_FLAG, present } from '../../command-line/shared-flags.ts'
import { invalidFile, parseDocumentText } from '../../files/read-document.ts'
import { CliError, usageError } from '../../output/cli-error.ts'
import { countOf, table } from '../../output/text.ts'
import { RULE_TITLES, ruleRows } from './rules.ts'
import { createdText, moveToStage, STAGE_FLAGS, stageOf } from './versions.ts'

const FLAGS = {
  ...STAGE_FLAGS,
  'if-version': IF_VERSION_FLAG,
  force: toggle('Put a whole rule set, whichever version is enforced.'),
} as const

export const rulesPutCommand: Command = command({
  name: 'rules put',
  summary: 'Set rules from a file',
  description:
    'A YAML or JSON file with "resource" and "rules" sets all rules of that resource at once. A file with the ' +
    '"rules" of all resources, tiers, exemptions and so on becomes a new version of the whole rule set, ' +
    'which is enforced unless --stage is set. All problems of the file are listed, and an invalid file is ' +
    'not stored. A whole rule set that removes or changes enforced rules requires --if-version with the ' +
    'version it was made from, or --force. With --json: resource, rules, version, and replaced if there were ' +
    'rules; or the version.',
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
      throw invalidFile(file, '"rules" is missing; expected the rules of a "resource", or a whole rule set.')
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
  if (force) throw usageError('--force needs a whole rule set; this file has the rules of one resource.')
  if ((stage ?? 'enforce') !== 'enforce' || percent !== undefined) {
    throw usageError('--stage and --percent need a whole rule set; the rules of one resource are enforced at once.')
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
  const value = await moveToStage(client, draft, next)
  return { value, text: diff === undefined ? createdText(value) : `${createdText(value)}\n${changesText(diff)}` }
}

/** Changes listed in the error; the others are counted. */
const MOST_LISTED = 10

/** A rule set to store. */
interface RuleSetPut {
  readonly ruleSet: RuleSet
  readonly note: string | undefined
  /** The enforced version that the author has seen; undefined if unknown. */
  readonly ifVersion: number | undefined
  /** Whether it may replace rules that the author has not seen. */
  readonly isForced: boolean
}

/** A stored draft, and its difference to the enforced version. */
interface StoredDraft {
  readonly draft: Version
  /** Undefined if none is enforced. */
  readonly diff: DiffAnswer | undefined
}

/**
 * Stores a rule set as a draft based on the enforced version. Stores nothing and throws `SLUICE_CLI_WOULD_REPLACE` if
 * `ifVersion` is not the enforced version, or if it is unknown and the next stage would remove or change enforced
 * rules.
 */
async function storeDraft(
  client: Client,
  { ruleSet, note, ifVersion, isForced }: RuleSetPut,
  next: StageRequest | 'draft',
): Promise<StoredDraft> {
  const { version: enforced } = await client.call('listRateLimits', { parameters: { limit: 1 } })
  if (ifVersion !== undefined && ifVersion !== enforced) throw wouldReplace(otherVersionText(ifVersion, enforced))
  const isSeen = isForced || ifVersion !== undefined || next === 'draft'
  if (enforced > 0 && !isSeen) await checkUnseenChanges(client, ruleSet, enforced)
  const draft = await client.call('createVersion', { body: { ruleSet, basedOn: enforced, ...present({ note }) } })
  if (enforced === 0) return { draft, diff: undefined }
  const diff = await client.call('diffVersions', { parameters: { number: enforced, to: draft.number } })
  return { draft, diff }
}

async function checkUnseenChanges(client: Client, ruleSet: RuleSet, enforced: number): Promise<void> {
  const { checkRuleSet, diffRuleSets } = await import('@sluice/core/policy')
  // The service rejects an invalid rule set and lists its problems.
  if (checkRuleSet(ruleSet).length > 0) return
  const current = await client.call('getVersion', { parameters: { number: enforced } })
  const changes = diffRuleSets(current.ruleSet as CoreRuleSet, ruleSet as CoreRuleSet) as readonly RuleSetChange[]
  const lost = changes.filter(({ change }) => change !== 'added')
  if (lost.length === 0) return
  throw wouldReplace(
    [
      `Version ${enforced} is enforced. The file would remove or change: ${namesOf(lost)}. Nothing was stored.`,
      `If the file was made from version ${enforced}, repeat with --if-version ${enforced}.`,
      'If the file is the only source of the rules, such as in a pipeline, use --force.',
      'To review the difference first, use --stage draft and "sluice rules diff".',
    ].join('\n  '),
  )
}

function otherVersionText(ifVersion: number, enforced: number): string {
  const now = enforced === 0 ? 'No version is enforced' : `Version ${enforced} is enforced`
  return (
    `${now}, expected version ${ifVersion} (--if-version). Nothing was stored. "sluice rules get" shows the ` +
    'enforced rules: add your change to them and repeat.'
  )
}

function wouldReplace(detail: string): CliError {
  return new CliError('SLUICE_CLI_WOULD_REPLACE', { detail })
}

function changesText({ from, to, changes }: DiffAnswer): string {
  const counts = (['added', 'changed', 'removed'] as const).map(
    (kind) => `${changes.filter(({ change }) => change === kind).length} ${kind}`,
  )
  return `Compared with version ${from}: ${counts.join(', ')}. "sluice rules diff ${from} ${to}" shows the changes.`
}

function namesOf(changes: readonly RuleSetChange[]): string {
  const named = changes
    .slice(0, MOST_LISTED)
    .map(({ change, part, name }) => `${name === '' ? part : `${part} ${name}`} (${change})`)
  const others = changes.length - named.length
  return `${named.join(', ')}${others === 0 ? '' : ` and ${others} more`}`
}
