import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { present } from '../parsing/caller-flags.ts'
import { flag } from '../parsing/flag.ts'
import { collected } from './collected.ts'
import { memberTable } from './member-rows.ts'

/** Lists who belongs to which tier. */
export const membersListCommand: Command = command({
  name: 'members list',
  summary: 'List members of tiers',
  description: 'All members of tiers, or those of one dimension or caller. With --json: items.',
  args: {},
  flags: {
    dimension: flag('text', '<name>', 'Only callers of this dimension.'),
    entity: flag('text', '<id>', 'Only this caller.'),
  },
  examples: ['members list --dimension tenant'],
  asksService: true,
  run: async ({ flags: { dimension, entity } }, context) => {
    const parameters = { limit: 1000, ...present({ dimension, entity }) }
    const items = await collected(context.client.items('listMembers', { parameters }), context)
    return { value: { items }, text: memberTable(items) }
  },
})
