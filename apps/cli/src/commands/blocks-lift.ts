import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { needed } from '../parsing/positional.ts'

/** Lifts a block. */
export const blocksLiftCommand: Command = command({
  name: 'blocks lift',
  summary: 'Lift a block',
  description: 'Removes the block and the violations that led to it. Takes effect with the next request.',
  args: { dimension: needed('What kind of caller.'), entity: needed('The caller.') },
  flags: {},
  examples: ['blocks lift ip 192.0.2.7'],
  asksService: true,
  run: async ({ args: { dimension, entity } }, { client }) => {
    await client.call('deleteBlock', { parameters: { dimension, entity } })
    return { value: { lifted: { dimension, entity } }, text: `Lifted the block of ${dimension}:${entity}.` }
  },
})
