import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { present } from '../parsing/caller-flags.ts'
import { flag } from '../parsing/flag.ts'
import { collected } from './collected.ts'
import { overrideTable } from './override-rows.ts'

/** Lists overrides. */
export const overridesListCommand: Command = command({
  name: 'overrides list',
  summary: 'List overrides',
  description: 'Limits that apply to single callers. With --json: items with entry, revision, changedAt and changedBy.',
  args: {},
  flags: { dimension: flag('text', '<name>', 'Only callers of this dimension.') },
  examples: ['overrides list --dimension tenant'],
  asksService: true,
  run: async ({ flags: { dimension } }, context) => {
    const parameters = { limit: 1000, ...present({ dimension }) }
    const items = await collected(context.client.items('listOverrides', { parameters }), context)
    return { value: { items }, text: overrideTable(items) }
  },
})
