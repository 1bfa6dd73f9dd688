import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { needed } from '../parsing/positional.ts'
import { IF_VERSION_FLAG } from './if-version-flag.ts'

/** Deletes a tier. */
export const tiersDeleteCommand: Command = command({
  name: 'tiers delete',
  summary: 'Delete a tier',
  description: 'Its members are limited like all other callers.',
  args: { name: needed('The tier.') },
  flags: { 'if-version': IF_VERSION_FLAG },
  examples: ['tiers delete premium'],
  asksService: true,
  run: async ({ args: { name }, flags: { 'if-version': ifMatch } }, { client }) => {
    await client.call('deleteTier', { parameters: { name }, ifMatch })
    return { value: { deleted: { name } }, text: `Deleted the tier ${name}.` }
  },
})
