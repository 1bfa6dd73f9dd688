import { usageError } from '../cli-error.ts'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { present } from '../parsing/caller-flags.ts'
import { durationMs } from '../parsing/duration.ts'
import { needed } from '../parsing/positional.ts'
import { shown } from '../parsing/shown.ts'
import { alertTable } from './alert-rows.ts'
import { NOTE_FLAG } from './note-flag.ts'

/** Keeps an alert quiet for a time. */
export const alertsSilenceCommand: Command = command({
  name: 'alerts silence',
  summary: 'Silence an alert',
  description: 'It stays listed, and no messages are sent until the silence ends. With --json: the alert.',
  args: { id: needed('The alert.'), duration: needed('For how long, such as 15m or 1h30m.') },
  flags: { note: NOTE_FLAG },
  examples: ['alerts silence 1987654321098765432 2h --note "load test until noon"'],
  asksService: true,
  run: async ({ args: { id, duration }, flags: { note } }, { client }) => {
    if (durationMs(duration) === undefined) {
      throw usageError(`${shown(duration)} is no duration; expected one such as 15m or 1h30m.`)
    }
    const body = { duration, ...present({ note }) }
    const value = await client.call('silenceAlert', { parameters: { id }, body })
    return { value, text: `Silenced alert ${id} for ${duration}.\n${alertTable([value])}` }
  },
})
