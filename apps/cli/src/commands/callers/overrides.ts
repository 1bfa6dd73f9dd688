import { isClientError } from '@sluice/client'
import type { Override, OverrideTerms, Stored } from '@sluice/contract'
import type { Command, Flags, GivenFlags } from '../../command-line/command.ts'
import { allItems, command, flag, LARGEST_PAGE, needed, optional } from '../../command-line/command.ts'
import { NOTE_FLAG, present } from '../../command-line/shared-flags.ts'
import { inBatches, readOverrides } from '../../files/override-file.ts'
import { CliError, usageError } from '../../output/cli-error.ts'
import { countOf, instantText, quoted, replacedText, table } from '../../output/text.ts'

const overridesListCommand: Command = command({
  name: 'overrides list',
  summary: 'List overrides',
  description: 'Limits that apply to single callers. With --json: items with entry, revision, changedAt and changedBy.',
  args: {},
  flags: { dimension: flag('text', '<name>', 'Only callers of this dimension.') },
  examples: ['overrides list --dimension tenant'],
  asksService: true,
  run: async ({ flags: { dimension } }, context) => {
    const parameters = { limit: LARGEST_PAGE, ...present({ dimension }) }
    const items = await allItems(context.client.items('listOverrides', { parameters }), context)
    return { value: { items }, text: overrideTable(items) }
  },
})

const overridesGetCommand: Command = command({
  name: 'overrides get',
  summary: 'Show the overrides of a caller',
  description: 'All of them, or the one for a resource. Exits with 1 if there is none. With --json: items.',
  args: {
    dimension: needed('Dimension of the caller: user, tenant, apiKey, ip, ...'),
    entity: needed('The caller.'),
    resource: optional('Resource of the override.'),
  },
  flags: {},
  examples: ['overrides get tenant acme'],
  asksService: true,
  run: async ({ args: { dimension, entity, resource } }, context) => {
    const all = await allItems(context.client.items('listOverrides', { parameters: { dimension, entity } }), context)
    const items = all.filter(({ entry }) => resource === undefined || entry.resource === resource)
    if (items.length > 0) return { value: { items }, text: overrideTable(items) }
    const where = resource === undefined ? '' : ` on ${quoted(resource)}`
    const detail = `There is no override for ${quoted(`${dimension}:${entity}`)}${where}.`
    throw new CliError('SLUICE_CLI_NOT_FOUND', { detail })
  },
})

const PUT_FLAGS = {
  limit: flag('text', '<count|off>', 'Limit in units; off removes the limit.'),
  window: flag('text', '<duration>', 'Window of the limit. Default: the window of the rule.'),
  burst: flag('whole', '<count>', 'Extra units for a burst.'),
  multiplier: flag('number', '<factor>', 'Factor for the limit of the rule.'),
  expires: flag('instant', '<when>', 'When it expires. Default: never.'),
  'if-revision': flag('whole', '<revision>', 'Only if it still has this revision; 0: only if there is none.'),
} as const satisfies Flags

const overridesPutCommand: Command = command({
  name: 'overrides put',
  summary: 'Set an override for one caller',
  description:
    'Sets the override of a caller for a resource, or * for all. Requires --limit or --multiplier. Different ' +
    'spellings of a resource are the same override. With --json: entry, revision, changedAt, changedBy, and ' +
    'replaced if there was one.',
  args: {
    dimension: needed('Dimension of the caller: user, tenant, apiKey, ip, ...'),
    entity: needed('The caller.'),
    resource: needed('Resource, written as in the rules.'),
  },
  flags: PUT_FLAGS,
  examples: ["overrides put tenant acme '*' --multiplier 5 --expires 30d", 'overrides put user u1 /export --limit 500'],
  asksService: true,
  run: async ({ args, flags }, { client }) => {
    const { expires: expiresAt, 'if-revision': ifMatch } = flags
    const body = { ...args, terms: termsOf(flags), ...present({ expiresAt }) }
    const value = await client.call('putOverride', { body, ifMatch })
    return {
      value,
      text:
        `Set the override for ${args.dimension}:${args.entity} on ` +
        `${args.resource}.\n${overrideTable([value])}${replacedText(value.replaced, ({ terms }) => termsText(terms))}`,
    }
  },
})

function termsOf({ limit, window, burst, multiplier }: GivenFlags<typeof PUT_FLAGS>): OverrideTerms {
  if ((limit === undefined) === (multiplier === undefined)) {
    throw usageError('Pass one of --limit and --multiplier.')
  }
  if (limit !== undefined && limit !== 'off' && !/^\d{1,15}$/.test(limit)) {
    throw usageError(`--limit got ${quoted(limit)}; expected a whole number or off.`)
  }
  return present({ limit: limit === undefined || limit === 'off' ? limit : Number(limit), window, burst, multiplier })
}

const overridesDeleteCommand: Command = command({
  name: 'overrides delete',
  summary: 'Delete an override',
  description: 'The rules apply to the caller unchanged.',
  args: {
    dimension: needed('Dimension of the caller.'),
    entity: needed('The caller.'),
    resource: needed('Resource of the override.'),
  },
  flags: { 'if-revision': flag('whole', '<revision>', 'Only if it still has this revision.') },
  examples: ["overrides delete tenant acme '*'"],
  asksService: true,
  run: async ({ args, flags }, { client }) => {
    await client.call('deleteOverride', { parameters: args, ifMatch: flags['if-revision'] })
    const { dimension, entity, resource } = args
    return {
      value: { deleted: { dimension, entity, resource } },
      text: `Deleted the override for ${dimension}:${entity} on ${resource}.`,
    }
  },
})

const overridesImportCommand: Command = command({
  name: 'overrides import',
  summary: 'Import overrides from a file',
  description:
    'A YAML or JSON list of overrides, or an .ndjson file with one JSON object per line. Sends batches of up to ' +
    '10000. Each batch is applied completely or not at all. With --json: count.',
  args: { file: needed('The file; - for standard input.') },
  flags: { note: NOTE_FLAG },
  examples: ['overrides import contracts.yaml --note "contracts of November"'],
  asksService: true,
  run: async ({ args: { file }, flags: { note } }, { client, readText, progress }) => {
    const overrides = readOverrides(await readText(file), file)
    let count = 0
    for (const batch of inBatches(overrides)) {
      progress.say(`setting overrides: ${count} of ${overrides.length}`)
      try {
        count += (await client.call('bulkOverrides', { body: { overrides: batch, ...present({ note }) } })).count
      } catch (error) {
        if (count === 0 || !isClientError(error)) throw error
        const next = `The first ${count} of ${overrides.length} are set. Import the rest, or the whole file again.`
        throw new CliError('SLUICE_CLI_PART_DONE', { detail: `${error.code}: ${error.detail} ${next}`, cause: error })
      }
    }
    return { value: { count }, text: `Set ${countOf(count, 'override')}.` }
  },
})

function overrideTable(items: readonly Stored<Override>[]): string {
  const rows = items.map(({ entry, revision, changedBy }) => [
    entry.dimension,
    entry.entity,
    entry.resource,
    termsText(entry.terms),
    instantText(entry.expiresAt),
    String(revision),
    changedBy,
  ])
  return table(['dimension', 'entity', 'resource', 'terms', 'expires', 'revision', 'by'], rows)
}

function termsText({ limit, window, burst, windows, multiplier }: OverrideTerms): string {
  const parts = [
    limit === undefined ? undefined : `limit ${limit}`,
    window === undefined ? undefined : `per ${typeof window === 'number' ? `${window} ms` : window}`,
    burst === undefined ? undefined : `burst ${burst}`,
    windows === undefined ? undefined : `${windows.length} windows`,
    multiplier === undefined ? undefined : `x ${multiplier}`,
  ]
  return parts.filter((part) => part !== undefined).join(' ')
}

export const overrideCommands: readonly Command[] = [
  overridesListCommand,
  overridesGetCommand,
  overridesPutCommand,
  overridesDeleteCommand,
  overridesImportCommand,
]
