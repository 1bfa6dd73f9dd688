import type { Counter } from '@sluice/contract'
import type { Command } from '../../command-line/command.ts'
import { command, flag, optional } from '../../command-line/command.ts'
import {
  CALLING_SERVICE_FLAG,
  DESCRIPTOR_FLAGS,
  descriptorsOf,
  IDENTITY_FLAGS,
  identityOf,
  NOTE_FLAG,
  present,
} from '../../command-line/shared-flags.ts'
import { usageError } from '../../output/cli-error.ts'
import { countOf, table } from '../../output/text.ts'

const usageCommand: Command = command({
  name: 'usage',
  summary: 'Show usage of callers',
  description:
    'Shows the counters of a caller for the rules that match the resource, or for all rules. Consumes nothing. ' +
    'Pass a resource or a caller.',
  args: { resource: optional('Resource of the calls.') },
  flags: { ...IDENTITY_FLAGS, ...CALLING_SERVICE_FLAG, descriptor: DESCRIPTOR_FLAGS.descriptor },
  examples: [
    'usage --user user-123',
    'usage /api/v1/data --tenant acme',
    'usage --service billing',
    'usage --descriptor model=large',
  ],
  asksService: true,
  run: async ({ args, flags }, { client }) => {
    const descriptors = descriptorsOf({ ...flags, number: [] })
    const more = {
      service: flags.service,
      resource: args.resource,
      descriptors: descriptors && JSON.stringify(descriptors),
    }
    const parameters = { ...identityOf(flags), ...present(more) }
    if (Object.keys(parameters).length === 0) throw usageError('Pass a resource or a caller, e.g. --user u1.')
    const value = await client.call('usage', { parameters })
    const rows = value.usage.flatMap(({ rule, dimension, entity, counters }) =>
      counters.map((counter) => [rule, `${dimension}:${entity}`, ...counterCells(counter)]),
    )
    return { value, text: table(['rule', 'caller', ...COUNTER_TITLES], rows) }
  },
})

const resetCommand: Command = command({
  name: 'reset',
  summary: 'Reset counters',
  description:
    'Resets the counters of a caller for the rules that match the resource, or for all rules; with --units, ' +
    'gives back that number of units instead. Pass a resource or a caller. With --json: reset, and count, the number ' +
    'of rules that count the caller.',
  args: { resource: optional('Resource of the calls.') },
  flags: {
    ...IDENTITY_FLAGS,
    ...CALLING_SERVICE_FLAG,
    ...DESCRIPTOR_FLAGS,
    units: flag('whole', '<units>', 'Number of units to give back. Default: all that were used.'),
    note: NOTE_FLAG,
  },
  examples: ['reset --user user-123 --note "import of last night"', 'reset /api/v1/data --user user-123 --units 20'],
  asksService: true,
  run: async ({ args, flags }, { client }) => {
    const { service, note, units } = flags
    const more = present({ service, resource: args.resource, descriptors: descriptorsOf(flags) })
    const subject = { ...identityOf(flags), ...more }
    if (Object.keys(subject).length === 0) throw usageError('Pass a resource or a caller, e.g. --user u1.')
    const { count } = await client.call('reset', { body: { ...subject, ...present({ units, note }) } })
    const rules = count === 1 ? '1 rule' : `${count} rules`
    const what = units === undefined ? 'Reset the counters of' : `Gave ${countOf(units, 'unit')} back to`
    const done = `${what} ${subjectText(subject)}, under ${rules}.`
    return {
      value: { reset: count > 0, count },
      text: count > 0 ? done : 'Nothing was reset: no rule counts this caller.',
    }
  },
})

const IDENTITIES = ['user', 'tenant', 'ip', 'service'] as const

/** Whose counters were reset. Never prints an API key. */
function subjectText(subject: ResetSubject): string {
  const callers = IDENTITIES.flatMap((name) => (subject[name] === undefined ? [] : [`${name}:${subject[name]}`]))
  if (subject.apiKey !== undefined) callers.push('the API key')
  const descriptors = Object.entries(subject.descriptors ?? {}).map(([name, value]) => `${name}:${value}`)
  const who = [...callers, ...descriptors].join(', ')
  if (subject.resource === undefined) return who
  return who === '' ? subject.resource : `${who} on ${subject.resource}`
}

interface ResetSubject extends Partial<Readonly<Record<(typeof IDENTITIES)[number] | 'apiKey' | 'resource', string>>> {
  readonly descriptors?: Readonly<Record<string, unknown>>
}

/** Titles of {@link counterCells}. */
const COUNTER_TITLES: readonly string[] = ['used', 'limit', 'remaining', 'resets at', 'blocked until']

function counterCells({ used, limit, remaining, resetAt, blockedUntil }: Counter): readonly string[] {
  return [countText(used), String(limit), countText(remaining), resetAt ?? '-', blockedUntil ?? '-']
}

/** A count; null: the store did not report it. */
export function countText(count: number | null): string {
  return count === null ? 'unknown' : String(count)
}

export const usageCommands: readonly Command[] = [usageCommand, resetCommand]
