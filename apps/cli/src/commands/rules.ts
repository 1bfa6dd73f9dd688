import type { Client } from '@sluice/client'
import type { DescriptorDomain, DescriptorNode, RateLimits, ResourceRule } from '@sluice/contract'
import { ENVOY_PATH } from '@sluice/contract'
import { stringify } from 'yaml'
import { flag, needed, optional } from '../command-line/arguments.ts'
import type { Command, CommandResult } from '../command-line/command.ts'
import { command } from '../command-line/command.ts'
import { checkConfigFile } from '../files/config-file.ts'
import { CliError, usageError } from '../output/cli-error.ts'
import { countOf, quoted, table } from '../output/text.ts'
import { enforcedVersion } from './versions.ts'

/** Lists the enforced rules. */
export const rulesListCommand: Command = command({
  name: 'rules list',
  summary: 'List the enforced rules',
  description:
    'The rules that are enforced, by resource, and the limits of domains, which services that speak the protocol of Envoy ask about. With --json: version, items with resource and rules, and domains.',
  args: {},
  flags: {},
  examples: ['rules list'],
  asksService: true,
  run: async (_, { client }) => {
    const items: RateLimits[] = []
    let version = 0
    for await (const page of client.pages('listRateLimits')) {
      items.push(...page.items)
      version = page.version
    }
    const domains = await domainsOf(client, version)
    const text = `version ${version}\n${table(RULE_TITLES, items.flatMap(ruleRows))}${domainTable(domains)}`
    return { value: { version, items, domains }, text }
  },
})

async function domainsOf(client: Client, version: number): Promise<readonly DescriptorDomain[]> {
  if (version === 0) return []
  const { ruleSet } = await client.call('getVersion', { parameters: { number: version } })
  return ruleSet.domains ?? []
}

function domainTable(domains: readonly DescriptorDomain[]): string {
  if (domains.length === 0) return ''
  return `\n\ndomains, asked about with POST ${ENVOY_PATH}\n${table(DOMAIN_TITLES, domains.flatMap(domainRows))}`
}

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
      throw new CliError('SLUICE_CLI_NOT_FOUND', { detail: `No rule is for the resource ${quoted(resource)}.` })
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

/** Checks a configuration file without a service. */
export const rulesValidateCommand: Command = command({
  name: 'rules validate',
  summary: 'Check a configuration file',
  description:
    'Checks a file for --config with the code that the service itself checks it with when it starts. Lists every problem with its line. Needs no running service and changes nothing. Exits with 2 when the service would not start with the file. With --json: file and rules, the number of rules.',
  args: { file: needed('The file, YAML or JSON.') },
  flags: {},
  examples: ['rules validate sluice.yaml'],
  asksService: false,
  run: async ({ args: { file } }, { readText }) => {
    if (file === '-') throw usageError('Standard input is not supported here; expected the path of a file.')
    // For the message about a file that cannot be read.
    await readText(file)
    const { rules, problems } = await checkConfigFile(file)
    if (problems.length > 0) {
      const detail = `${file} has ${countOf(problems.length, 'problem')}, so the service would not start with it. Correct:`
      throw new CliError('SLUICE_CLI_INVALID_FILE', { detail, errors: problems })
    }
    const text = `${file} is valid: ${rules === 0 ? 'settings only, no rules' : countOf(rules, 'rule')}.`
    return { value: { file, rules }, text }
  },
})

/** Deletes the rules of a resource. */
export const rulesDeleteCommand: Command = command({
  name: 'rules delete',
  summary: 'Delete the rules of a resource',
  description: 'Deletes all rules of the resource at once. "sluice rules rollback" restores them.',
  args: { resource: needed('The resource, as its rules write it.') },
  flags: { 'if-version': flag('whole', '<version>', 'Only when this version is the enforced one.') },
  examples: ['rules delete /api/v1/data'],
  asksService: true,
  run: async ({ args: { resource }, flags }, { client }) => {
    await client.call('deleteRateLimits', { parameters: { resource }, ifMatch: flags['if-version'] })
    return { value: { deleted: { resource } }, text: `Deleted the rules of ${resource}.` }
  },
})

/** The titles of {@link ruleRows}. */
export const RULE_TITLES: readonly string[] = ['resource', 'dimension', 'limit', 'window', 'algorithm', 'name', 'notes']

/** The rules of a resource, in rows of a table. */
export function ruleRows({ resource, rules }: RateLimits): readonly (readonly string[])[] {
  return rules.map((rule) => [
    resource,
    rule.dimension,
    limitText(rule),
    windowText(rule.window),
    rule.algorithm ?? 'gcra',
    rule.name ?? '-',
    ruleNotes(rule),
  ])
}

function limitText(rule: ResourceRule): string {
  // Some algorithms call theirs a capacity, or have several.
  const { limit, capacity, windows } = rule as ResourceRule & {
    readonly capacity?: unknown
    readonly windows?: unknown
  }
  const single = limit ?? capacity
  if (single !== undefined) return String(single)
  return Array.isArray(windows) ? `${windows.length} windows` : '-'
}

function windowText(window: unknown): string {
  if (window === undefined) return '-'
  return typeof window === 'string' ? window : JSON.stringify(window)
}

function ruleNotes({ methods, shadow, percent, enabled }: ResourceRule): string {
  const notes = [
    methods?.join(','),
    shadow === true ? 'shadow' : undefined,
    percent === undefined ? undefined : `${percent} %`,
    enabled === false ? 'disabled' : undefined,
  ]
  return notes.filter((note) => note !== undefined).join(' ') || '-'
}

/** The titles of {@link domainRows}. */
const DOMAIN_TITLES: readonly string[] = ['domain', 'descriptor', 'limit', 'window', 'name', 'notes']

/** The limits of a domain, in rows of a table. */
function domainRows({ domain, descriptors }: DescriptorDomain): readonly (readonly string[])[] {
  return descriptors.flatMap((node) => nodeRows(node, [])).map((row) => [domain, ...row])
}

function nodeRows(node: DescriptorNode, above: readonly string[]): readonly (readonly string[])[] {
  const { key, value, limit, descriptors = [] } = node
  const path = [...above, value === undefined ? key : `${key}=${value}`]
  const below = descriptors.flatMap((each) => nodeRows(each, path))
  if (limit === undefined) return below
  const { requestsPerUnit, unit, name } = limit
  const row = [path.join(' '), requestsPerUnit ?? 'unlimited', unit ?? '-', name ?? '-', nodeNotes(node)]
  return [row.map(String), ...below]
}

function nodeNotes({ shadow, quota }: DescriptorNode): string {
  const notes = [shadow === true ? 'shadow' : undefined, quota === true ? 'quota' : undefined]
  return notes.filter((note) => note !== undefined).join(' ') || '-'
}
