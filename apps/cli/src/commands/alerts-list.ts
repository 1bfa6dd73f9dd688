import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { alertTable } from './alert-rows.ts'
import { collected } from './collected.ts'

/** Lists alerts. */
export const alertsListCommand: Command = command({
  name: 'alerts list',
  summary: 'List alerts',
  description: 'Firing alerts first, then resolved ones, newest first. With --json: items.',
  args: {},
  flags: {},
  examples: ['alerts list'],
  asksService: true,
  run: async (_, context) => {
    const items = await collected(context.client.items('listAlerts', { parameters: { limit: 1000 } }), context)
    return { value: { items }, text: alertTable(items) }
  },
})
