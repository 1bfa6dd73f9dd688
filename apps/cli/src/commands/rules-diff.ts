import type { RuleSetChange } from '@sluice/contract'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { needed, optional } from '../parsing/positional.ts'
import { enforcedVersion } from './enforced-version.ts'
import { versionNumber } from './version-number.ts'

/** What stands before a change. */
const CHANGE_SIGNS: Readonly<Record<RuleSetChange['change'], string>> = {
  added: '+',
  removed: '-',
  changed: '~',
}

/** Compares two versions. */
export const rulesDiffCommand: Command = command({
  name: 'rules diff',
  summary: 'Compare two versions',
  description:
    'What changes from one version to another; with one version, what changes when it replaces the enforced one. With --json: from, to, and changes with change, part, name, before and after.',
  args: { from: needed('The version before; alone, the one after.'), to: optional('The version after.') },
  flags: {},
  examples: ['rules diff 12 13', 'rules diff 13'],
  asksService: true,
  run: async ({ args }, { client }) => {
    const last = versionNumber(args.to ?? args.from)
    const first = args.to === undefined ? await enforcedVersion(client) : versionNumber(args.from)
    const value = await client.call('diffVersions', { parameters: { number: first, to: last } })
    const lines = value.changes.flatMap(changeLines)
    const text = lines.length === 0 ? 'No differences.' : lines.join('\n')
    return { value, text: `from version ${first} to ${last}\n${text}` }
  },
})

function changeLines({ change, part, name, before, after }: RuleSetChange): readonly string[] {
  return [
    `${CHANGE_SIGNS[change]} ${part}${name === '' ? '' : ` ${name}`}`,
    ...(before === undefined ? [] : [`    - ${JSON.stringify(before)}`]),
    ...(after === undefined ? [] : [`    + ${JSON.stringify(after)}`]),
  ]
}
