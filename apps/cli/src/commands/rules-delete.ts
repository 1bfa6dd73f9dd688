import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { flag } from '../parsing/flag.ts'
import { needed } from '../parsing/positional.ts'

/** Deletes the rules of a resource. */
export const rulesDeleteCommand: Command = command({
  name: 'rules delete',
  summary: 'Delete the rules of a resource',
  description: 'Deletes all rules of the resource at once. "sluice rules rollback" restores them.',
  args: { resource: needed('The resource, as its rules write it.') },
  flags: { 'if-version': flag('whole', '<version>', 'Only when this version is the enforced one.') },
  examples: ['rules delete /api/v1/data'],
  asksService: true,
  run: async ({ args: { resource }, flags }, { client }) => {
    await client.call('deleteRateLimits', { parameters: { resource }, ifMatch: flags['if-version'] })
    return { value: { deleted: { resource } }, text: `Deleted the rules of ${resource}.` }
  },
})
