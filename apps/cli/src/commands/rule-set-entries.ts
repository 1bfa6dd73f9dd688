import type { DenyEntry, Exemption, RuleSet, Tier } from '@sluice/contract'
import { needed } from '../command-line/arguments.ts'
import type { Command } from '../command-line/command.ts'
import { collected, command } from '../command-line/command.ts'
import { IF_VERSION_FLAG } from '../command-line/shared-flags.ts'
import { namedDocument } from '../files/document.ts'
import { instantText, replacedPartText, table } from '../output/text.ts'

/** Lists tiers. */
export const tiersListCommand: Command = command({
  name: 'tiers list',
  summary: 'List tiers',
  description:
    'The tiers of the enforced rules: what they multiply limits by, what they add, and the rules of their own. With --json: items.',
  args: {},
  flags: {},
  examples: ['tiers list'],
  asksService: true,
  run: async (_, context) => {
    const items = await collected(context.client.items('listTiers', { parameters: { limit: 1000 } }), context)
    return { value: { items }, text: tierTable(items) }
  },
})

/** Sets a tier. */
export const tiersPutCommand: Command = command({
  name: 'tiers put',
  summary: 'Set a tier',
  description:
    'A file of YAML or JSON with one tier: its name, and multiplier, burst, entitled or rules. Enforced at once. With --json: entry, version, and replaced where there was one of its name.',
  args: { file: needed('The file; - for standard input.') },
  flags: { 'if-version': IF_VERSION_FLAG },
  examples: ['tiers put premium.yaml --if-version 12'],
  asksService: true,
  run: async ({ args: { file }, flags: { 'if-version': ifMatch } }, { client, readText }) => {
    const body = namedDocument<Tier>(await readText(file), file, 'tier')
    const value = await client.call('putTier', { parameters: { name: body.name }, body, ifMatch })
    return {
      value,
      text: `Set the tier ${body.name}, enforced as version ${value.version}.${replacedPartText(value.replaced)}`,
    }
  },
})

/** Deletes a tier. */
export const tiersDeleteCommand: Command = command({
  name: 'tiers delete',
  summary: 'Delete a tier',
  description: 'Its members are limited like all other callers.',
  args: { name: needed('The tier.') },
  flags: { 'if-version': IF_VERSION_FLAG },
  examples: ['tiers delete premium'],
  asksService: true,
  run: async ({ args: { name }, flags: { 'if-version': ifMatch } }, { client }) => {
    await client.call('deleteTier', { parameters: { name }, ifMatch })
    return { value: { deleted: { name } }, text: `Deleted the tier ${name}.` }
  },
})

/** Tiers, for people. */
function tierTable(items: readonly Tier[]): string {
  const rows = items.map(({ name, multiplier, burst, entitled, rules }) => [
    name,
    `x ${multiplier ?? 1}`,
    String(burst ?? 0),
    entitled === true ? 'yes' : 'no',
    String(rules?.length ?? 0),
  ])
  return table(['name', 'limits', 'burst', 'entitled', 'rules'], rows)
}

/** Lists exemptions. */
export const exemptionsListCommand: Command = command({
  name: 'exemptions list',
  summary: 'List exemptions',
  description: 'Requests that the rules do not apply to. The first exemption that matches counts. With --json: items.',
  args: {},
  flags: {},
  examples: ['exemptions list'],
  asksService: true,
  run: async (_, context) => {
    const items = await collected(context.client.items('listExemptions', { parameters: { limit: 1000 } }), context)
    return { value: { items }, text: exemptionTable(items) }
  },
})

/** Sets an exemption. */
export const exemptionsPutCommand: Command = command({
  name: 'exemptions put',
  summary: 'Set an exemption',
  description:
    'A file of YAML or JSON with one exemption: its name, what it must match, and the rules that apply instead, if any. A new one comes last. Enforced at once. With --json: entry, version, and replaced where there was one of its name.',
  args: { file: needed('The file; - for standard input.') },
  flags: { 'if-version': IF_VERSION_FLAG },
  examples: ['exemptions put health.yaml'],
  asksService: true,
  run: async ({ args: { file }, flags: { 'if-version': ifMatch } }, { client, readText }) => {
    const body = namedDocument<Exemption>(await readText(file), file, 'exemption')
    const value = await client.call('putExemption', { parameters: { name: body.name }, body, ifMatch })
    return {
      value,
      text: `Set the exemption ${body.name}, enforced as version ${value.version}.${replacedPartText(value.replaced)}`,
    }
  },
})

/** Deletes an exemption. */
export const exemptionsDeleteCommand: Command = command({
  name: 'exemptions delete',
  summary: 'Delete an exemption',
  description: 'The rules apply to its requests again.',
  args: { name: needed('The exemption.') },
  flags: { 'if-version': IF_VERSION_FLAG },
  examples: ['exemptions delete health'],
  asksService: true,
  run: async ({ args: { name }, flags: { 'if-version': ifMatch } }, { client }) => {
    await client.call('deleteExemption', { parameters: { name }, ifMatch })
    return { value: { deleted: { name } }, text: `Deleted the exemption ${name}.` }
  },
})

/** Exemptions, for people. */
function exemptionTable(items: readonly Exemption[]): string {
  const rows = items.map(({ name, match, rules }) => [name, String(rules?.length ?? 0), matchText(match)])
  return table(['name', 'rules', 'matches'], rows)
}

/** Lists the deny list. */
export const denyListListCommand: Command = command({
  name: 'deny-list list',
  summary: 'List the deny list',
  description: 'Requests that are always denied. With --json: items.',
  args: {},
  flags: {},
  examples: ['deny-list list'],
  asksService: true,
  run: async (_, context) => {
    const items = await collected(context.client.items('listDenyEntries', { parameters: { limit: 1000 } }), context)
    return { value: { items }, text: denyTable(items) }
  },
})

/** Sets an entry of the deny list. */
export const denyListPutCommand: Command = command({
  name: 'deny-list put',
  summary: 'Set a deny-list entry',
  description:
    'A file of YAML or JSON with one entry: its name, what it must match, and expiresAt, if it ends. Enforced at once. With --json: entry, version, and replaced where there was one of its name.',
  args: { file: needed('The file; - for standard input.') },
  flags: { 'if-version': IF_VERSION_FLAG },
  examples: ['deny-list put scrapers.yaml'],
  asksService: true,
  run: async ({ args: { file }, flags: { 'if-version': ifMatch } }, { client, readText }) => {
    const body = namedDocument<DenyEntry>(await readText(file), file, 'entry of the deny list')
    const value = await client.call('putDenyEntry', { parameters: { name: body.name }, body, ifMatch })
    return {
      value,
      text: `Set the deny-list entry ${body.name}, enforced as version ${value.version}.${replacedPartText(value.replaced)}`,
    }
  },
})

/** Deletes an entry of the deny list. */
export const denyListDeleteCommand: Command = command({
  name: 'deny-list delete',
  summary: 'Delete a deny-list entry',
  description: 'Its requests are limited by the rules again.',
  args: { name: needed('The entry.') },
  flags: { 'if-version': IF_VERSION_FLAG },
  examples: ['deny-list delete scrapers'],
  asksService: true,
  run: async ({ args: { name }, flags: { 'if-version': ifMatch } }, { client }) => {
    await client.call('deleteDenyEntry', { parameters: { name }, ifMatch })
    return { value: { deleted: { name } }, text: `Deleted the deny-list entry ${name}.` }
  },
})

/** Entries of the deny list, for people. */
function denyTable(items: readonly DenyEntry[]): string {
  const rows = items.map(({ name, match, expiresAt }) => [name, instantText(expiresAt), matchText(match)])
  return table(['name', 'expires', 'matches'], rows)
}

type Match = NonNullable<RuleSet['exemptions']>[number]['match']

/** Which requests are meant, in one line. */
function matchText(match: Match): string {
  return Object.entries(match)
    .map(([name, value]) => `${name} ${Array.isArray(value) ? value.join(',') : value}`)
    .join(' ')
}
