import { CliError } from '../cli-error.ts'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { needed, optional } from '../parsing/positional.ts'
import { shown } from '../parsing/shown.ts'
import { collected } from './collected.ts'
import { overrideTable } from './override-rows.ts'

/** Shows the overrides of a caller. */
export const overridesGetCommand: Command = command({
  name: 'overrides get',
  summary: 'Show the overrides of a caller',
  description: 'All of them, or the one of a resource. Ends with 1 when there is none. With --json: items.',
  args: {
    dimension: needed('What kind of caller: user, tenant, apiKey, ip, ...'),
    entity: needed('The caller.'),
    resource: optional('The resource of the override, as it writes it.'),
  },
  flags: {},
  examples: ['overrides get tenant acme'],
  asksService: true,
  run: async ({ args: { dimension, entity, resource } }, context) => {
    const all = await collected(context.client.items('listOverrides', { parameters: { dimension, entity } }), context)
    const items = all.filter(({ entry }) => resource === undefined || entry.resource === resource)
    if (items.length > 0) return { value: { items }, text: overrideTable(items) }
    const where = resource === undefined ? '' : ` for ${shown(resource)}`
    const detail = `There is no override of ${shown(`${dimension}:${entity}`)}${where}.`
    throw new CliError('SLUICE_CLI_NOT_FOUND', { detail })
  },
})
