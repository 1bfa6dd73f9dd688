import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { present } from '../parsing/caller-flags.ts'
import { needed } from '../parsing/positional.ts'
import { alertTable } from './alert-rows.ts'
import { NOTE_FLAG } from './note-flag.ts'

/** Acknowledges an alert. */
export const alertsAcknowledgeCommand: Command = command({
  name: 'alerts acknowledge',
  summary: 'Acknowledge an alert',
  description: 'No further messages are sent while it fires. With --json: the alert.',
  args: { id: needed('The alert.') },
  flags: { note: NOTE_FLAG },
  examples: ['alerts acknowledge 1987654321098765432 --note "load test"'],
  asksService: true,
  run: async ({ args: { id }, flags: { note } }, { client }) => {
    const value = await client.call('acknowledgeAlert', { parameters: { id }, body: present({ note }) })
    return { value, text: `Acknowledged alert ${id}.\n${alertTable([value])}` }
  },
})
