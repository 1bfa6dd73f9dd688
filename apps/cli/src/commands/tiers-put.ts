import type { Tier } from '@sluice/contract'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { needed } from '../parsing/positional.ts'
import { IF_VERSION_FLAG } from './if-version-flag.ts'
import { namedDocument } from './named-document.ts'
import { replacedPartText } from './replaced-text.ts'

/** Sets a tier. */
export const tiersPutCommand: Command = command({
  name: 'tiers put',
  summary: 'Set a tier',
  description:
    'A file of YAML or JSON with one tier: its name, and multiplier, burst, entitled or rules. Enforced at once. With --json: entry, version, and replaced where there was one of its name.',
  args: { file: needed('The file; - for standard input.') },
  flags: { 'if-version': IF_VERSION_FLAG },
  examples: ['tiers put premium.yaml --if-version 12'],
  asksService: true,
  run: async ({ args: { file }, flags: { 'if-version': ifMatch } }, { client, readText }) => {
    const body = namedDocument<Tier>(await readText(file), file, 'tier')
    const value = await client.call('putTier', { parameters: { name: body.name }, body, ifMatch })
    return {
      value,
      text: `Set the tier ${body.name}, enforced as version ${value.version}.${replacedPartText(value.replaced)}`,
    }
  },
})
