import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { present } from '../parsing/caller-flags.ts'
import { flag } from '../parsing/flag.ts'
import { blockTable } from './block-rows.ts'
import { collected } from './collected.ts'

/** Lists blocks. */
export const blocksListCommand: Command = command({
  name: 'blocks list',
  summary: 'List blocked callers',
  description: 'Blocks set by hand or by the penalty of a rule. With --json: items.',
  args: {},
  flags: { dimension: flag('text', '<name>', 'Only callers of this dimension.') },
  examples: ['blocks list --dimension ip'],
  asksService: true,
  run: async ({ flags: { dimension } }, context) => {
    const parameters = { limit: 1000, ...present({ dimension }) }
    const items = await collected(context.client.items('listBlocks', { parameters }), context)
    return { value: { items }, text: blockTable(items) }
  },
})
