import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { present } from '../parsing/caller-flags.ts'
import { flag } from '../parsing/flag.ts'
import { needed } from '../parsing/positional.ts'
import { keyId } from './key-id.ts'
import { issuedResult } from './key-rows.ts'

/** Replaces an API key. */
export const keysRotateCommand: Command = command({
  name: 'keys rotate',
  summary: 'Replace an API key',
  description:
    'Creates a new key with the same role and revokes the old one, at once or after --overlap. Prints the new key once. With --json: apiKey and token.',
  args: { id: needed('The visible part of the key, slk_...') },
  flags: { overlap: flag('duration', '<duration>', 'How long the old key stays valid beside the new one.') },
  examples: ['keys rotate slk_4f9d1c --overlap 1h'],
  asksService: true,
  run: async ({ args: { id }, flags: { overlap: overlapMs } }, { client }) =>
    issuedResult(
      await client.call('rotateApiKey', { parameters: { id: keyId(id) }, body: present({ overlapMs }) }),
      `Replaced the API key ${keyId(id)}.`,
    ),
})
