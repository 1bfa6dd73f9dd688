import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { needed } from '../parsing/positional.ts'

/** Takes a caller out of its tier. */
export const membersDeleteCommand: Command = command({
  name: 'members delete',
  summary: 'Take a caller out of its tier',
  description: 'It is limited like everybody from then on.',
  args: { dimension: needed('What kind of caller.'), entity: needed('The caller.') },
  flags: {},
  examples: ['members delete tenant acme'],
  asksService: true,
  run: async ({ args: { dimension, entity } }, { client }) => {
    await client.call('deleteMember', { parameters: { dimension, entity } })
    return { value: { deleted: { dimension, entity } }, text: `${dimension}:${entity} belongs to no tier.` }
  },
})
