import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { flag } from '../parsing/flag.ts'
import { needed } from '../parsing/positional.ts'

/** Deletes an override. */
export const overridesDeleteCommand: Command = command({
  name: 'overrides delete',
  summary: 'Delete an override',
  description: 'The rules apply to the caller unchanged.',
  args: {
    dimension: needed('What kind of caller.'),
    entity: needed('The caller.'),
    resource: needed('The resource of the override, as it writes it.'),
  },
  flags: { 'if-revision': flag('whole', '<revision>', 'Only when it still has this revision.') },
  examples: ["overrides delete tenant acme '*'"],
  asksService: true,
  run: async ({ args, flags }, { client }) => {
    await client.call('deleteOverride', { parameters: args, ifMatch: flags['if-revision'] })
    const { dimension, entity, resource } = args
    return {
      value: { deleted: { dimension, entity, resource } },
      text: `Deleted the override for ${dimension}:${entity} on ${resource}.`,
    }
  },
})
