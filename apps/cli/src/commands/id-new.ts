import { MOST_IDS } from '@sluice/contract'
import { usageError } from '../cli-error.ts'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { flag } from '../parsing/flag.ts'

/** Generates unique ids. */
export const idNewCommand: Command = command({
  name: 'id new',
  summary: 'Generate unique ids',
  description:
    'Ids of 63 bits that no other node makes, rising with time, one in each line. With --json: ids, as texts.',
  args: {},
  flags: { count: flag('whole', '<count>', 'How many, 1 to 1000. Default: 1.') },
  examples: ['id new --count 5'],
  asksService: true,
  run: async ({ flags: { count = 1 } }, { client }) => {
    if (count < 1 || count > MOST_IDS) throw usageError(`--count got ${count}; expected 1 to ${MOST_IDS}.`)
    const value = await client.call('ids', { parameters: { count } })
    return { value, text: value.ids.join('\n') }
  },
})
