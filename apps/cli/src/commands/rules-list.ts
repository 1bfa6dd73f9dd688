import type { Client } from '@sluice/client'
import type { DescriptorDomain, RateLimits } from '@sluice/contract'
import { ENVOY_PATH } from '@sluice/contract'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { table } from '../output/table.ts'
import { DOMAIN_TITLES, domainRows } from './domain-rows.ts'
import { RULE_TITLES, ruleRows } from './rule-rows.ts'

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
    const text = `version ${version}\n${table(RULE_TITLES, items.flatMap(ruleRows))}${domainText(domains)}`
    return { value: { version, items, domains }, text }
  },
})

async function domainsOf(client: Client, version: number): Promise<readonly DescriptorDomain[]> {
  if (version === 0) return []
  const { ruleSet } = await client.call('getVersion', { parameters: { number: version } })
  return ruleSet.domains ?? []
}

function domainText(domains: readonly DescriptorDomain[]): string {
  if (domains.length === 0) return ''
  return `\n\ndomains, asked about with POST ${ENVOY_PATH}\n${table(DOMAIN_TITLES, domains.flatMap(domainRows))}`
}
