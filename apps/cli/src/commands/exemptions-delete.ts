import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { needed } from '../parsing/positional.ts'
import { IF_VERSION_FLAG } from './if-version-flag.ts'

/** Remove an exemption. */
export const exemptionsDeleteCommand: Command = command({
  name: 'exemptions delete',
  summary: 'Remove an exemption',
  description: 'The rules hold for these requests from then on.',
  args: { name: needed('The exemption.') },
  flags: { 'if-version': IF_VERSION_FLAG },
  examples: ['exemptions delete health'],
  asksService: true,
  run: async ({ args: { name }, flags: { 'if-version': ifMatch } }, { client }) => {
    await client.call('deleteExemption', { parameters: { name }, ifMatch })
    return { value: { deleted: { name } }, text: `${name} is removed.` }
  },
})
