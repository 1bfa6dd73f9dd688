import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { needed } from '../parsing/positional.ts'
import { IF_VERSION_FLAG } from './if-version-flag.ts'

/** Deletes an exemption. */
export const exemptionsDeleteCommand: Command = command({
  name: 'exemptions delete',
  summary: 'Delete an exemption',
  description: 'The rules apply to its requests again.',
  args: { name: needed('The exemption.') },
  flags: { 'if-version': IF_VERSION_FLAG },
  examples: ['exemptions delete health'],
  asksService: true,
  run: async ({ args: { name }, flags: { 'if-version': ifMatch } }, { client }) => {
    await client.call('deleteExemption', { parameters: { name }, ifMatch })
    return { value: { deleted: { name } }, text: `Deleted the exemption ${name}.` }
  },
})
