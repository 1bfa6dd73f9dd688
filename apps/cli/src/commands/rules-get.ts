import type { Client } from '@sluice/client'
import { stringify } from 'yaml'
import { CliError, usageError } from '../cli-error.ts'
import type { Command, CommandResult } from '../command.ts'
import { command } from '../command.ts'
import { flag } from '../parsing/flag.ts'
import { optional } from '../parsing/positional.ts'
import { shown } from '../parsing/shown.ts'
import { enforcedVersion } from './enforced-version.ts'

/** Shows rules as a file that `rules put` takes. */
export const rulesGetCommand: Command = command({
  name: 'rules get',
  summary: 'Show rules as YAML',
  description:
    'The enforced rules of one resource; without one, the whole rule set that is enforced, or that of another version. Prints YAML, to be changed and put back. With --json: resource, rules and version; or the version with its ruleSet.',
  args: { resource: optional('The resource, as its rules write it.') },
  flags: { at: flag('whole', '<version>', 'The whole rule set of this version.') },
  examples: ['rules get /api/v1/data', 'rules get --at 12 > rules-12.yaml'],
  asksService: true,
  run: async ({ args: { resource }, flags: { at } }, { client }) => {
    if (resource === undefined) return await wholeRuleSet(client, at ?? (await enforcedVersion(client)))
    if (at !== undefined) throw usageError('Pass a resource or --at, not both.')
    const { items, version } = await client.call('listRateLimits', { parameters: { resource } })
    const [found] = items
    if (found === undefined)
      throw new CliError('SLUICE_CLI_NOT_FOUND', { detail: `No rule is for the resource ${shown(resource)}.` })
    return { value: { ...found, version }, text: yamlOf(version, found) }
  },
})

async function wholeRuleSet(client: Client, number: number): Promise<CommandResult> {
  const value = await client.call('getVersion', { parameters: { number } })
  return { value, text: yamlOf(number, value.ruleSet) }
}

function yamlOf(version: number, value: unknown): string {
  return `# version ${version}: put it back with --if-version ${version}\n${stringify(value).trimEnd()}`
}
