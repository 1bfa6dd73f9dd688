import { usageError } from '../cli-error.ts'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import {
  DESCRIPTOR_FLAGS,
  descriptorsOf,
  IDENTITY_FLAGS,
  identityOf,
  present,
  SERVICE_FLAGS,
} from '../parsing/caller-flags.ts'
import { flag } from '../parsing/flag.ts'
import { optional } from '../parsing/positional.ts'

/** Lets counters start anew. */
export const resetCommand: Command = command({
  name: 'reset',
  summary: 'Let the counters of callers start anew',
  description:
    'Forgets what these callers have used: under the rules that the resource matches, or under all without one. At least one of resource and flags that name somebody is needed. With --json: reset, and count, the number of rules that count them.',
  args: { resource: optional('What is called.') },
  flags: {
    ...IDENTITY_FLAGS,
    ...SERVICE_FLAGS,
    ...DESCRIPTOR_FLAGS,
    note: flag('text', '<text>', 'Why, for the audit log.'),
  },
  examples: ['reset --user user-123 --note "import of last night"'],
  asksService: true,
  run: async ({ args, flags }, { client }) => {
    const { service, note } = flags
    const more = present({ service, resource: args.resource, descriptors: descriptorsOf(flags) })
    const meant = { ...identityOf(flags), ...more }
    if (Object.keys(meant).length === 0) throw usageError('Whose counters? Name a resource, or somebody: --user u1.')
    const { count } = await client.call('reset', { body: { ...meant, ...present({ note }) } })
    return { value: { reset: count > 0, count }, text: resetText(count) }
  },
})

function resetText(count: number): string {
  if (count === 0) return 'Nothing was reset: no rule counts these callers.'
  return `The counters of ${count === 1 ? 'one rule' : `${count} rules`} start anew.`
}
