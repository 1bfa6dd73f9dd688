import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { collected } from './collected.ts'
import { tierTable } from './tier-rows.ts'

/** Lists tiers. */
export const tiersListCommand: Command = command({
  name: 'tiers list',
  summary: 'List tiers',
  description:
    'The tiers of the enforced rules: what they multiply limits by, what they add, and the rules of their own. With --json: items.',
  args: {},
  flags: {},
  examples: ['tiers list'],
  asksService: true,
  run: async (_, context) => {
    const items = await collected(context.client.items('listTiers', { parameters: { limit: 1000 } }), context)
    return { value: { items }, text: tierTable(items) }
  },
})
