import { usageError } from '../cli-error.ts'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { table } from '../output/table.ts'
import {
  DESCRIPTOR_FLAGS,
  descriptorsOf,
  IDENTITY_FLAGS,
  identityOf,
  present,
  SERVICE_FLAGS,
} from '../parsing/caller-flags.ts'
import { optional } from '../parsing/positional.ts'
import { COUNTER_TITLES, counterCells } from './counter-rows.ts'

/** Shows what callers have used. */
export const usageCommand: Command = command({
  name: 'usage',
  summary: 'Show usage of callers',
  description:
    'Shows the counters of callers under the rules that match the resource, or under all rules. Consumes nothing. Pass a resource or a caller.',
  args: { resource: optional('What is called.') },
  flags: { ...IDENTITY_FLAGS, ...SERVICE_FLAGS, descriptor: DESCRIPTOR_FLAGS.descriptor },
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
