import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { collected } from './collected.ts'
import { denyTable } from './deny-rows.ts'

/** List what is always refused. */
export const denyListListCommand: Command = command({
  name: 'deny-list list',
  summary: 'List what is always refused',
  description: 'Requests that are refused whatever else is said. With --json: items.',
  args: {},
  flags: {},
  examples: ['deny-list list'],
  asksService: true,
  run: async (_, context) => {
    const items = await collected(context.client.items('listDenyEntries', { parameters: { limit: 1000 } }), context)
    return { value: { items }, text: denyTable(items) }
  },
})
