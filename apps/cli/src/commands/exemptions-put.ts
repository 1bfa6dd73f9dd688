import type { Exemption } from '@sluice/contract'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { needed } from '../parsing/positional.ts'
import { IF_VERSION_FLAG } from './if-version-flag.ts'
import { namedDocument } from './named-document.ts'
import { replacedPartText } from './replaced-text.ts'

/** Sets an exemption. */
export const exemptionsPutCommand: Command = command({
  name: 'exemptions put',
  summary: 'Set an exemption',
  description:
    'A file of YAML or JSON with one exemption: its name, what it must match, and the rules that apply instead, if any. A new one comes last. Enforced at once. With --json: entry, version, and replaced where there was one of its name.',
  args: { file: needed('The file; - for standard input.') },
  flags: { 'if-version': IF_VERSION_FLAG },
  examples: ['exemptions put health.yaml'],
  asksService: true,
  run: async ({ args: { file }, flags: { 'if-version': ifMatch } }, { client, readText }) => {
    const body = namedDocument<Exemption>(await readText(file), file, 'exemption')
    const value = await client.call('putExemption', { parameters: { name: body.name }, body, ifMatch })
    return {
      value,
      text: `Set the exemption ${body.name}, enforced as version ${value.version}.${replacedPartText(value.replaced)}`,
    }
  },
})
