import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { needed } from '../parsing/positional.ts'
import { IF_VERSION_FLAG } from './if-version-flag.ts'

/** Deletes an entry of the deny list. */
export const denyListDeleteCommand: Command = command({
  name: 'deny-list delete',
  summary: 'Delete a deny-list entry',
  description: 'Its requests are limited by the rules again.',
  args: { name: needed('The entry.') },
  flags: { 'if-version': IF_VERSION_FLAG },
  examples: ['deny-list delete scrapers'],
  asksService: true,
  run: async ({ args: { name }, flags: { 'if-version': ifMatch } }, { client }) => {
    await client.call('deleteDenyEntry', { parameters: { name }, ifMatch })
    return { value: { deleted: { name } }, text: `Deleted the deny-list entry ${name}.` }
  },
})
