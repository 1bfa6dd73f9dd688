import type { Client } from '@sluice/client'
import type { DenyEntry, Exemption, Tier } from '@sluice/contract'
import type { Command } from '../../command-line/command.ts'
import { allItems, command, LARGEST_PAGE, needed } from '../../command-line/command.ts'
import { IF_VERSION_FLAG } from '../../command-line/shared-flags.ts'
import { parseNamedDocument } from '../../files/read-document.ts'
import { instantText, table } from '../../output/text.ts'

/** A kind of named entry in the enforced rule set. Its three commands differ in nouns and operations only. */
interface EntryKind<E extends { readonly name: string }> {
  /** First word of its commands. */
  readonly group: string
  /** One entry, in messages: `tier`. */
  readonly noun: string
  /** One entry with its article: `a tier`. */
  readonly aNoun: string
  /** All entries: `tiers`. */
  readonly nouns: string
  readonly listDescription: string
  /** What a file must contain, after "A YAML or JSON file with one <noun>: ". */
  readonly fileContents: string
  readonly deleteDescription: string
  readonly putExample: string
  readonly deleteExample: string
  readonly columns: readonly string[]
  readonly row: (entry: E) => readonly string[]
  readonly list: (client: Client) => AsyncIterable<E>
  readonly put: (client: Client, entry: E, ifMatch: number | undefined) => Promise<PutAnswer>
  readonly delete: (client: Client, name: string, ifMatch: number | undefined) => Promise<unknown>
}

interface PutAnswer {
  /** Version that is enforced after the change. */
  readonly version: number
  readonly replaced?: unknown
}

/** `<group> list`, `<group> put` and `<group> delete`. */
function entryCommands<E extends { readonly name: string }>(kind: EntryKind<E>): readonly Command[] {
  const { group, noun, aNoun, nouns } = kind
  return [
    command({
      name: `${group} list`,
      summary: `List ${nouns}`,
      description: `${kind.listDescription} With --json: items.`,
      args: {},
      flags: {},
      examples: [`${group} list`],
      asksService: true,
      run: async (_, context) => {
        const items = await allItems(kind.list(context.client), context)
        return { value: { items }, text: table(kind.columns, items.map(kind.row)) }
      },
    }),
    command({
      name: `${group} put`,
      summary: `Set ${aNoun}`,
      description:
        `A YAML or JSON file with one ${noun}: ${kind.fileContents} Enforced at once. With --json: ` +
        'entry, version, and replaced if the name existed.',
      args: { file: needed('The file; - for standard input.') },
      flags: { 'if-version': IF_VERSION_FLAG },
      examples: [`${group} put ${kind.putExample}`],
      asksService: true,
      run: async ({ args: { file }, flags: { 'if-version': ifMatch } }, { client, readText }) => {
        const entry = parseNamedDocument<E>(await readText(file), file, noun)
        const value = await kind.put(client, entry, ifMatch)
        const replaced = value.replaced === undefined ? '' : `\nReplaced: ${JSON.stringify(value.replaced)}`
        return { value, text: `Set the ${noun} ${entry.name}, enforced as version ${value.version}.${replaced}` }
      },
    }),
    command({
      name: `${group} delete`,
      summary: `Delete ${aNoun}`,
      description: kind.deleteDescription,
      args: { name: needed(`Name of the ${noun}.`) },
      flags: { 'if-version': IF_VERSION_FLAG },
      examples: [`${group} delete ${kind.deleteExample}`],
      asksService: true,
      run: async ({ args: { name }, flags: { 'if-version': ifMatch } }, { client }) => {
        await kind.delete(client, name, ifMatch)
        return { value: { deleted: { name } }, text: `Deleted the ${noun} ${name}.` }
      },
    }),
  ]
}

export const tierCommands: readonly Command[] = entryCommands<Tier>({
  group: 'tiers',
  noun: 'tier',
  aNoun: 'a tier',
  nouns: 'tiers',
  listDescription: 'Tiers of the enforced rules: the factor for limits, extra burst, and their own rules.',
  fileContents: 'name, and multiplier, burst, entitled or rules.',
  deleteDescription: 'Its members are limited like callers without a tier.',
  putExample: 'premium.yaml --if-version 12',
  deleteExample: 'premium',
  columns: ['name', 'limits', 'burst', 'entitled', 'rules'],
  row: ({ name, multiplier, burst, entitled, rules }) => [
    name,
    `x ${multiplier ?? 1}`,
    String(burst ?? 0),
    entitled === true ? 'yes' : 'no',
    String(rules?.length ?? 0),
  ],
  list: (client) => client.items('listTiers', { parameters: { limit: LARGEST_PAGE } }),
  put: (client, body, ifMatch) => client.call('putTier', { parameters: { name: body.name }, body, ifMatch }),
  delete: (client, name, ifMatch) => client.call('deleteTier', { parameters: { name }, ifMatch }),
})

export const exemptionCommands: readonly Command[] = entryCommands<Exemption>({
  group: 'exemptions',
  noun: 'exemption',
  aNoun: 'an exemption',
  nouns: 'exemptions',
  listDescription: 'Requests that the rules do not apply to. The first matching exemption applies.',
  fileContents: 'name, match, and optional rules that apply instead. A new exemption is added at the end.',
  deleteDescription: 'The rules apply to its requests again.',
  putExample: 'health.yaml',
  deleteExample: 'health',
  columns: ['name', 'rules', 'matches'],
  row: ({ name, match, rules }) => [name, String(rules?.length ?? 0), matchText(match)],
  list: (client) => client.items('listExemptions', { parameters: { limit: LARGEST_PAGE } }),
  put: (client, body, ifMatch) => client.call('putExemption', { parameters: { name: body.name }, body, ifMatch }),
  delete: (client, name, ifMatch) => client.call('deleteExemption', { parameters: { name }, ifMatch }),
})

export const denyListCommands: readonly Command[] = entryCommands<DenyEntry>({
  group: 'deny-list',
  noun: 'deny-list entry',
  aNoun: 'a deny-list entry',
  nouns: 'deny-list entries',
  listDescription: 'Requests that are always denied.',
  fileContents: 'name, match, and optional expiresAt.',
  deleteDescription: 'The rules apply to its requests again.',
  putExample: 'scrapers.yaml',
  deleteExample: 'scrapers',
  columns: ['name', 'expires', 'matches'],
  row: ({ name, match, expiresAt }) => [name, instantText(expiresAt), matchText(match)],
  list: (client) => client.items('listDenyEntries', { parameters: { limit: LARGEST_PAGE } }),
  put: (client, body, ifMatch) => client.call('putDenyEntry', { parameters: { name: body.name }, body, ifMatch }),
  delete: (client, name, ifMatch) => client.call('deleteDenyEntry', { parameters: { name }, ifMatch }),
})

function matchText(match: Exemption['match'] | DenyEntry['match']): string {
  return Object.entries(match)
    .map(([name, value]) => `${name} ${Array.isArray(value) ? value.join(',') : value}`)
    .join(' ')
}
