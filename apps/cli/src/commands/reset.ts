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
    'Resets what these callers have used, under the rules that match the resource, or under all rules. Pass a resource or a caller.',
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
    await client.call('reset', { body: { ...meant, ...present({ note }) } })
    return { value: { reset: true }, text: `Reset the counters of ${subjectText(meant)}.` }
  },
})

const NOUNS = { userId: 'user', tenantId: 'tenant', clientIp: 'ip', service: 'service' } as const

/** Whose counters were reset, in a few words. An API key is not printed. */
function subjectText(meant: ResetSubject): string {
  const callers = Object.entries(NOUNS).flatMap(([field, noun]) => {
    const entity = meant[field as keyof typeof NOUNS]
    return entity === undefined ? [] : [`${noun}:${entity}`]
  })
  if (meant.apiKey !== undefined) callers.push('the API key')
  const descriptors = Object.entries(meant.descriptors ?? {}).map(([name, value]) => `${name}:${value}`)
  const who = [...callers, ...descriptors].join(', ')
  if (meant.resource === undefined) return who
  return who === '' ? meant.resource : `${who} on ${meant.resource}`
}

interface ResetSubject extends Partial<Readonly<Record<keyof typeof NOUNS | 'apiKey' | 'resource', string>>> {
  readonly descriptors?: Readonly<Record<string, unknown>>
}
