import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { collected } from './collected.ts'
import { denyTable } from './deny-rows.ts'

/** Lists the deny list. */
export const denyListListCommand: Command = command({
  name: 'deny-list list',
  summary: 'List the deny list',
  description: 'Requests that are always denied. With --json: items.',
  args: {},
  flags: {},
  examples: ['deny-list list'],
  asksService: true,
  run: async (_, context) => {
    const items = await collected(context.client.items('listDenyEntries', { parameters: { limit: 1000 } }), context)
    return { value: { items }, text: denyTable(items) }
  },
})
