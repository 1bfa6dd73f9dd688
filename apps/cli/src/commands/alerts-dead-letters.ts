import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { instantText, table } from '../output/table.ts'
import { collected } from './collected.ts'

/** Lists messages that could not be delivered. */
export const alertsDeadLettersCommand: Command = command({
  name: 'alerts dead-letters',
  summary: 'List undelivered alert messages',
  description: 'Messages whose every delivery attempt failed, newest first. With --json: items.',
  args: {},
  flags: {},
  examples: ['alerts dead-letters'],
  asksService: true,
  run: async (_, context) => {
    const items = await collected(context.client.items('listDeadLetters', { parameters: { limit: 1000 } }), context)
    const rows = items.map((letter) => [
      letter.id,
      letter.alertId ?? letter.cidr ?? '-',
      letter.destination,
      String(letter.attempts),
      instantText(letter.lastAttemptAt),
      letter.error,
    ])
    return { value: { items }, text: table(['id', 'alert', 'destination', 'attempts', 'last', 'error'], rows) }
  },
})
