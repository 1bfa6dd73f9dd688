import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { collected } from './collected.ts'
import { exemptionTable } from './exemption-rows.ts'

/** List exemptions. */
export const exemptionsListCommand: Command = command({
  name: 'exemptions list',
  summary: 'List exemptions',
  description:
    'Requests that the rules do not hold for, in the order in which they are looked at: the first that matches counts. With --json: items.',
  args: {},
  flags: {},
  examples: ['exemptions list'],
  asksService: true,
  run: async (_, context) => {
    const items = await collected(context.client.items('listExemptions', { parameters: { limit: 1000 } }), context)
    return { value: { items }, text: exemptionTable(items) }
  },
})
