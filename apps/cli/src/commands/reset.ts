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

/** Resets counters. */
export const resetCommand: Command = command({
  name: 'reset',
  summary: 'Reset counters',
  description:
    'Resets what these callers have used, under the rules that match the resource, or under all rules. Pass a resource or a caller. With --json: reset, and count, the number of rules that count them.',
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
    if (Object.keys(meant).length === 0) throw usageError('Pass a resource or a caller, e.g. --user u1.')
    const { count } = await client.call('reset', { body: { ...meant, ...present({ note }) } })
    const rules = count === 1 ? '1 rule' : `${count} rules`
    const done = `Reset the counters of ${subjectText(meant)}, under ${rules}.`
    return {
      value: { reset: count > 0, count },
      text: count > 0 ? done : 'Nothing was reset: no rule counts these callers.',
    }
  },
})

const IDENTITIES = ['user', 'tenant', 'ip', 'service'] as const

/** Whose counters were reset, in a few words. An API key is not printed. */
function subjectText(meant: ResetSubject): string {
  const callers = IDENTITIES.flatMap((name) => (meant[name] === undefined ? [] : [`${name}:${meant[name]}`]))
  if (meant.apiKey !== undefined) callers.push('the API key')
  const descriptors = Object.entries(meant.descriptors ?? {}).map(([name, value]) => `${name}:${value}`)
  const who = [...callers, ...descriptors].join(', ')
  if (meant.resource === undefined) return who
  return who === '' ? meant.resource : `${who} on ${meant.resource}`
}

interface ResetSubject extends Partial<Readonly<Record<(typeof IDENTITIES)[number] | 'apiKey' | 'resource', string>>> {
  readonly descriptors?: Readonly<Record<string, unknown>>
}
