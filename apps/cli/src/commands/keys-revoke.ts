import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { needed } from '../parsing/positional.ts'
import { keyId } from './key-id.ts'

/** Revokes an API key. */
export const keysRevokeCommand: Command = command({
  name: 'keys revoke',
  summary: 'Revoke an API key',
  description: 'It is invalid at once on this node, and on all nodes within seconds.',
  args: { id: needed('The visible part of the key, slk_...') },
  flags: {},
  examples: ['keys revoke slk_4f9d1c'],
  asksService: true,
  run: async ({ args: { id } }, { client }) => {
    await client.call('revokeApiKey', { parameters: { id: keyId(id) } })
    return { value: { revoked: { id: keyId(id) } }, text: `Revoked the API key ${keyId(id)}.` }
  },
})
