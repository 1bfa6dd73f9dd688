import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { needed } from '../parsing/positional.ts'

/** Removes a caller from its tier. */
export const membersDeleteCommand: Command = command({
  name: 'members delete',
  summary: 'Remove a caller from its tier',
  description: 'The caller is limited like all others without a tier.',
  args: { dimension: needed('What kind of caller.'), entity: needed('The caller.') },
  flags: {},
  examples: ['members delete tenant acme'],
  asksService: true,
  run: async ({ args: { dimension, entity } }, { client }) => {
    await client.call('deleteMember', { parameters: { dimension, entity } })
    return { value: { deleted: { dimension, entity } }, text: `Removed ${dimension}:${entity} from its tier.` }
  },
})
