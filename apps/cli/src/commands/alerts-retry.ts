import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { needed } from '../parsing/positional.ts'

/** Tries to deliver a message again. */
export const alertsRetryCommand: Command = command({
  name: 'alerts retry',
  summary: 'Try to deliver a message again',
  description:
    'Sends it with the same idempotency key as before. Whether it arrived is seen in the list of dead letters later.',
  args: { id: needed('The message, as the list of dead letters names it.') },
  flags: {},
  examples: ['alerts retry 1987654321098765440'],
  asksService: true,
  run: async ({ args: { id } }, { client }) => {
    await client.call('retryDeadLetter', { parameters: { id } })
    return { value: { retried: { id } }, text: `${id} is sent again.` }
  },
})
