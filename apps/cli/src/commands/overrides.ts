import { isClientError } from '@sluice/client'
import type { Override, OverrideTerms, Stored } from '@sluice/contract'
import type { Flags, GivenFlags } from '../command-line/arguments.ts'
import { flag, needed, optional } from '../command-line/arguments.ts'
import type { Command } from '../command-line/command.ts'
import { collected, command } from '../command-line/command.ts'
import { NOTE_FLAG, present } from '../command-line/shared-flags.ts'
import { inParts, readOverrides } from '../files/override-file.ts'
import { CliError, usageError } from '../output/cli-error.ts'
import { countOf, instantText, quoted, replacedText, table } from '../output/text.ts'

/** Lists overrides. */
export const overridesListCommand: Command = command({
  name: 'overrides list',
  summary: 'List overrides',
  description: 'Limits that apply to single callers. With --json: items with entry, revision, changedAt and changedBy.',
  args: {},
  flags: { dimension: flag('text', '<name>', 'Only callers of this dimension.') },
  examples: ['overrides list --dimension tenant'],
  asksService: true,
  run: async ({ flags: { dimension } }, context) => {
    const parameters = { limit: 1000, ...present({ dimension }) }
    const items = await collected(context.client.items('listOverrides', { parameters }), context)
    return { value: { items }, text: overrideTable(items) }
  },
})

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
    const where = resource === undefined ? '' : ` for ${quoted(resource)}`
    const detail = `There is no override of ${quoted(`${dimension}:${entity}`)}${where}.`
    throw new CliError('SLUICE_CLI_NOT_FOUND', { detail })
  },
})

const PUT_FLAGS = {
  limit: flag('text', '<count|off>', 'Units allowed; off removes the limit.'),
  window: flag('text', '<duration>', 'Window of the limit. Default: that of the rule.'),
  burst: flag('whole', '<count>', 'Units on top for a burst.'),
  multiplier: flag('number', '<factor>', 'Multiplies the limit of the rule.'),
  expires: flag('instant', '<when>', 'When it expires. Default: never.'),
  'if-revision': flag('whole', '<revision>', 'Only when it still has this revision; 0: only when there is none.'),
} as const satisfies Flags

/** Sets an override. */
export const overridesPutCommand: Command = command({
  name: 'overrides put',
  summary: 'Set an override for one caller',
  description:
    'Sets the override of a caller for a resource, or * for all. One of --limit and --multiplier is needed. However the resource is written, it is the same override. With --json: entry, revision, changedAt, changedBy, and replaced where there was one.',
  args: {
    dimension: needed('What kind of caller: user, tenant, apiKey, ip, ...'),
    entity: needed('The caller.'),
    resource: needed('The resource, as the rules write it.'),
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
      text: `Set the override for ${args.dimension}:${args.entity} on ${args.resource}.\n${overrideTable([value])}${replacedText(value.replaced, ({ terms }) => termsText(terms))}`,
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

/** Deletes an override. */
export const overridesDeleteCommand: Command = command({
  name: 'overrides delete',
  summary: 'Delete an override',
  description: 'The rules apply to the caller unchanged.',
  args: {
    dimension: needed('What kind of caller.'),
    entity: needed('The caller.'),
    resource: needed('The resource of the override, as it writes it.'),
  },
  flags: { 'if-revision': flag('whole', '<revision>', 'Only when it still has this revision.') },
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

/** Sets many overrides from a file. */
export const overridesImportCommand: Command = command({
  name: 'overrides import',
  summary: 'Import overrides from a file',
  description:
    'A list of overrides in YAML or JSON, or one JSON object in each line of a file that ends with .ndjson. They are sent in parts of up to 10000, each of which is taken as a whole or not at all. With --json: count.',
  args: { file: needed('The file; - for standard input.') },
  flags: { note: NOTE_FLAG },
  examples: ['overrides import contracts.yaml --note "contracts of November"'],
  asksService: true,
  run: async ({ args: { file }, flags: { note } }, { client, readText, progress }) => {
    const overrides = readOverrides(await readText(file), file)
    let count = 0
    for (const part of inParts(overrides)) {
      progress.say(`setting overrides: ${count} of ${overrides.length}`)
      try {
        count += (await client.call('bulkOverrides', { body: { overrides: part, ...present({ note }) } })).count
      } catch (error) {
        if (count === 0 || !isClientError(error)) throw error
        const next = `The first ${count} of ${overrides.length} are set; import the rest, or all again.`
        throw new CliError('SLUICE_CLI_PART_DONE', { detail: `${error.code}: ${error.detail} ${next}`, cause: error })
      }
    }
    return { value: { count }, text: `Set ${countOf(count, 'override')}.` }
  },
})

/** Overrides, for people. */
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

/** The numbers of an override, in a few words. */
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
