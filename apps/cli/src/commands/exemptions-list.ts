import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { collected } from './collected.ts'
import { exemptionTable } from './exemption-rows.ts'

/** Lists exemptions. */
export const exemptionsListCommand: Command = command({
  name: 'exemptions list',
  summary: 'List exemptions',
  description: 'Requests that the rules do not apply to. The first exemption that matches counts. With --json: items.',
  args: {},
  flags: {},
  examples: ['exemptions list'],
  asksService: true,
  run: async (_, context) => {
    const items = await collected(context.client.items('listExemptions', { parameters: { limit: 1000 } }), context)
    return { value: { items }, text: exemptionTable(items) }
  },
})
