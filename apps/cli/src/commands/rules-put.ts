import type { Client } from '@sluice/client'
import type { RateLimitsRequest, RuleSet } from '@sluice/contract'
import { usageError } from '../cli-error.ts'
import type { Command, CommandResult } from '../command.ts'
import { command } from '../command.ts'
import { invalidFile, parseDocumentText } from '../documents/document.ts'
import { present } from '../parsing/caller-flags.ts'
import type { GivenFlags } from '../parsing/flag.ts'
import { flag } from '../parsing/flag.ts'
import { needed } from '../parsing/positional.ts'
import { STAGE_FLAGS, staged, stageOf, versionText } from './staging.ts'

const FLAGS = {
  ...STAGE_FLAGS,
  'if-version': flag('whole', '<version>', 'Only when this version is the enforced one; 0 when none may be.'),
} as const

/** Sets rules from a file. */
export const rulesPutCommand: Command = command({
  name: 'rules put',
  summary: 'Set rules from a file',
  description:
    'A file of YAML or JSON with "resource" and "rules" sets all rules of that resource, at once. One with the "rules" of all resources, and tiers, exemptions and so on, becomes a version of the whole rule set, which is enforced unless --stage says otherwise. It is checked as a whole; everything that is wrong is listed. With --json: resource, rules and version; or the version.',
  args: { file: needed('The file; - for standard input.') },
  flags: FLAGS,
  examples: ['rules put orders.yaml', 'rules put sluice.yaml --stage percent --percent 10 --note "try it on some"'],
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
  const { stage, percent, note, 'if-version': ifMatch } = flags
  if ((stage ?? 'enforce') !== 'enforce' || percent !== undefined) {
    throw usageError('Rules of one resource are enforced at once; --stage and --percent go with a whole rule set.')
  }
  const value = await client.call('putRateLimits', { body: { ...document, ...present({ note }) }, ifMatch })
  const count = value.rules.length === 1 ? '1 rule' : `${value.rules.length} rules`
  return { value, text: `${value.resource} has ${count}, enforced since version ${value.version}.` }
}

async function putRuleSet(client: Client, ruleSet: RuleSet, flags: GivenFlags<typeof FLAGS>): Promise<CommandResult> {
  const { stage = 'enforce', note, 'if-version': basedOn } = flags
  const next = stageOf({ ...flags, stage })
  const draft = await client.call('createVersion', { body: { ruleSet, ...present({ basedOn, note }) } })
  const value = await staged(client, draft, next)
  return { value, text: versionText(value) }
}
