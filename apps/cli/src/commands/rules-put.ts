import type { Client } from '@sluice/client'
import type { RateLimitsRequest, RuleSet } from '@sluice/contract'
import { usageError } from '../cli-error.ts'
import type { Command, CommandResult } from '../command.ts'
import { command } from '../command.ts'
import { invalidFile, parseDocumentText } from '../documents/document.ts'
import { countOf, table } from '../output/table.ts'
import { present } from '../parsing/caller-flags.ts'
import type { GivenFlags } from '../parsing/flag.ts'
import { toggle } from '../parsing/flag.ts'
import { needed } from '../parsing/positional.ts'
import { IF_VERSION_FLAG } from './if-version-flag.ts'
import { RULE_TITLES, ruleRows } from './rule-rows.ts'
import { changesText, storeDraft } from './rule-set-put.ts'
import { madeText, STAGE_FLAGS, staged, stageOf } from './staging.ts'

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
