import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { collected } from './collected.ts'
import { keyTable } from './key-rows.ts'

/** Lists API keys. */
export const keysListCommand: Command = command({
  name: 'keys list',
  summary: 'List API keys',
  description: 'All keys without their secrets, also those that have ended. With --json: items.',
  args: {},
  flags: {},
  examples: ['keys list'],
  asksService: true,
  run: async (_, context) => {
    const items = await collected(context.client.items('listApiKeys', { parameters: { limit: 1000 } }), context)
    return { value: { items }, text: keyTable(items) }
  },
})
