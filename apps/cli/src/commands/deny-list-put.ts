import type { DenyEntry } from '@sluice/contract'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { needed } from '../parsing/positional.ts'
import { IF_VERSION_FLAG } from './if-version-flag.ts'
import { namedDocument } from './named-document.ts'
import { replacedPartText } from './replaced-text.ts'

/** Sets an entry of the deny list. */
export const denyListPutCommand: Command = command({
  name: 'deny-list put',
  summary: 'Set a deny-list entry',
  description:
    'A file of YAML or JSON with one entry: its name, what it must match, and expiresAt, if it ends. Enforced at once. With --json: entry, version, and replaced where there was one of its name.',
  args: { file: needed('The file; - for standard input.') },
  flags: { 'if-version': IF_VERSION_FLAG },
  examples: ['deny-list put scrapers.yaml'],
  asksService: true,
  run: async ({ args: { file }, flags: { 'if-version': ifMatch } }, { client, readText }) => {
    const body = namedDocument<DenyEntry>(await readText(file), file, 'entry of the deny list')
    const value = await client.call('putDenyEntry', { parameters: { name: body.name }, body, ifMatch })
    return {
      value,
      text: `Set the deny-list entry ${body.name}, enforced as version ${value.version}.${replacedPartText(value.replaced)}`,
    }
  },
})
