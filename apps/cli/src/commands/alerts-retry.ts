import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { needed } from '../parsing/positional.ts'

/** Tries to deliver a message again. */
export const alertsRetryCommand: Command = command({
  name: 'alerts retry',
  summary: 'Retry an undelivered message',
  description:
    'Sends it again with the same idempotency key. "sluice alerts dead-letters" lists it again if that fails.',
  args: { id: needed('The message, as the list of dead letters names it.') },
  flags: {},
  examples: ['alerts retry 1987654321098765440'],
  asksService: true,
  run: async ({ args: { id } }, { client }) => {
    await client.call('retryDeadLetter', { parameters: { id } })
    return { value: { retried: { id } }, text: `Queued message ${id} for delivery.` }
  },
})
