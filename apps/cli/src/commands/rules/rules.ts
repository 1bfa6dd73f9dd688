import type { Client } from '@sluice/client'
import type { DescriptorDomain, DescriptorNode, RateLimits, ResourceRule } from '@sluice/contract'
import { ENVOY_PATH } from '@sluice/contract'
import { stringify } from 'yaml'
import type { Command, CommandResult } from '../../command-line/command.ts'
import { command, flag, needed, optional } from '../../command-line/command.ts'
import { checkConfigFile } from '../../files/config-file.ts'
import { CliError, usageError } from '../../output/cli-error.ts'
import { countOf, quoted, table } from '../../output/text.ts'
import { enforcedVersion } from './versions.ts'

export const rulesListCommand: Command = command({
  name: 'rules list',
  summary: 'List the enforced rules',
  description:
    'The enforced rules by resource, and the limits of domains, for clients of the Envoy protocol. With --json: ' +
    'version, items with resource and rules, and domains.',
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
  return `\n\ndomains, checked with POST ${ENVOY_PATH}\n${table(DOMAIN_TITLES, domains.flatMap(domainRows))}`
}

export const rulesGetCommand: Command = command({
  name: 'rules get',
  summary: 'Show rules as YAML',
  description:
    'The enforced rules of one resource, the whole enforced rule set, or the rule set of another version. Prints ' +
    'YAML that you can edit and put back. With --json: resource, rules and version; or the version with its ' +
    'ruleSet.',
  args: { resource: optional('Resource, written as in the rules.') },
  flags: { at: flag('whole', '<version>', 'Show the rule set of this version.') },
  examples: ['rules get /api/v1/data', 'rules get --at 12 > rules-12.yaml'],
  asksService: true,
  run: async ({ args: { resource }, flags: { at } }, { client }) => {
    if (resource === undefined) return await wholeRuleSet(client, at ?? (await enforcedVersion(client)))
    if (at !== undefined) throw usageError('Pass a resource or --at, not both.')
    const { items, version } = await client.call('listRateLimits', { parameters: { resource } })
    const [found] = items
    if (found === undefined)
      throw new CliError('SLUICE_CLI_NOT_FOUND', { detail: `There are no rules for the resource ${quoted(resource)}.` })
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

export const rulesValidateCommand: Command = command({
  name: 'rules validate',
  summary: 'Check a configuration file',
  description:
    'Checks a --config file with the code of the service. Lists every problem with its line. Needs no running ' +
    'service. Exits with 2 if the service would not start with the file. Warns about dimensions that may be ' +
    'misspelt. With --json: file, rules, the number of rules, and warnings.',
  args: { file: needed('The file, YAML or JSON.') },
  flags: {},
  examples: ['rules validate sluice.yaml'],
  asksService: false,
  run: async ({ args: { file } }, { readText }) => {
    if (file === '-') throw usageError('Standard input is not supported here; expected the path of a file.')
    // Throws the usual error for an unreadable file.
    await readText(file)
    const { rules, problems, warnings } = await checkConfigFile(file)
    if (problems.length > 0) {
      const detail = `${file} has ${countOf(problems.length, 'problem')}; the service does not start with it. Correct:`
      throw new CliError('SLUICE_CLI_INVALID_FILE', { detail, errors: problems })
    }
    const text = `${file} is valid: ${rules === 0 ? 'settings only, no rules' : countOf(rules, 'rule')}.`
    return {
      value: { file, rules, warnings },
      text: [text, ...warnings.map((warning) => `Warning: ${warning}`)].join('\n'),
    }
  },
})

export const rulesDeleteCommand: Command = command({
  name: 'rules delete',
  summary: 'Delete the rules of a resource',
  description: 'Deletes all rules of the resource at once. "sluice rules rollback" restores them.',
  args: { resource: needed('Resource, written as in the rules.') },
  flags: { 'if-version': flag('whole', '<version>', 'Only if this version is enforced.') },
  examples: ['rules delete /api/v1/data'],
  asksService: true,
  run: async ({ args: { resource }, flags }, { client }) => {
    await client.call('deleteRateLimits', { parameters: { resource }, ifMatch: flags['if-version'] })
    return { value: { deleted: { resource } }, text: `Deleted the rules of ${resource}.` }
  },
})

/** Titles of {@link ruleRows}. */
export const RULE_TITLES: readonly string[] = ['resource', 'dimension', 'limit', 'window', 'algorithm', 'name', 'notes']

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

/** Some algorithms have a capacity or several windows instead of a limit. */
function limitText({ limit, capacity, windows }: ResourceRule): string {
  const single = limit ?? capacity
  if (single !== undefined) return String(single)
  return windows === undefined ? '-' : `${windows.length} windows`
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

/** Titles of {@link domainRows}. */
const DOMAIN_TITLES: readonly string[] = ['domain', 'descriptor', 'limit', 'window', 'name', 'notes']

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
