import type { RateLimits } from '@sluice/contract'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { table } from '../output/table.ts'
import { RULE_TITLES, ruleRows } from './rule-rows.ts'

/** Lists the enforced rules. */
export const rulesListCommand: Command = command({
  name: 'rules list',
  summary: 'List the enforced rules',
  description: 'The rules that are enforced, by resource. With --json: version, and items with resource and rules.',
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
    const text = `version ${version}\n${table(RULE_TITLES, items.flatMap(ruleRows))}`
    return { value: { version, items }, text }
  },
})
