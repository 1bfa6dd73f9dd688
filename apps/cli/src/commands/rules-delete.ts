import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { flag } from '../parsing/flag.ts'
import { needed } from '../parsing/positional.ts'

/** Removes the rules of a resource. */
export const rulesDeleteCommand: Command = command({
  name: 'rules delete',
  summary: 'Remove the rules of a resource',
  description: 'Removes all rules of the resource, at once. "sluice rules rollback" brings them back.',
  args: { resource: needed('The resource, as its rules write it.') },
  flags: { 'if-version': flag('whole', '<version>', 'Only when this version is the enforced one.') },
  examples: ['rules delete /api/v1/data'],
  asksService: true,
  run: async ({ args: { resource }, flags }, { client }) => {
    await client.call('deleteRateLimits', { parameters: { resource }, ifMatch: flags['if-version'] })
    return { value: { deleted: { resource } }, text: `${resource} has no rules of its own any more.` }
  },
})
