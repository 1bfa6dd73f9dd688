import type { Membership, Stored } from '@sluice/contract'
import type { Command } from '../../command-line/command.ts'
import { allItems, command, flag, LARGEST_PAGE, needed } from '../../command-line/command.ts'
import { present } from '../../command-line/shared-flags.ts'
import { instantText, replacedText, table } from '../../output/text.ts'

const membersListCommand: Command = command({
  name: 'members list',
  summary: 'List members of tiers',
  description: 'All members of tiers, or those of one dimension or caller. With --json: items.',
  args: {},
  flags: {
    dimension: flag('text', '<name>', 'Only callers of this dimension.'),
    entity: flag('text', '<id>', 'Only this caller.'),
  },
  examples: ['members list --dimension tenant'],
  asksService: true,
  run: async ({ flags: { dimension, entity } }, context) => {
    const parameters = { limit: LARGEST_PAGE, ...present({ dimension, entity }) }
    const items = await allItems(context.client.items('listMembers', { parameters }), context)
    return { value: { items }, text: memberTable(items) }
  },
})

const membersPutCommand: Command = command({
  name: 'members put',
  summary: 'Put a caller into a tier',
  description:
    'A caller has at most one tier, so this replaces the previous one. With --json: entry, revision, changedAt, ' +
    'changedBy, and replaced if it had one.',
  args: {
    dimension: needed('Dimension of the caller: user, apiKey or tenant.'),
    entity: needed('The caller.'),
    tier: needed('Name of the tier.'),
  },
  flags: {
    expires: flag('instant', '<when>', 'When the membership ends. Default: never.'),
    'if-revision': flag('whole', '<revision>', 'Only if it still has this revision; 0: only if there is none.'),
  },
  examples: ['members put tenant acme premium --expires 30d'],
  asksService: true,
  run: async ({ args, flags: { expires: expiresAt, 'if-revision': ifMatch } }, { client }) => {
    const body = { ...args, ...present({ expiresAt }) } as Membership
    const value = await client.call('putMember', { body, ifMatch })
    return {
      value,
      text:
        `Put ${args.dimension}:${args.entity} into tier ` +
        `${args.tier}.\n${memberTable([value])}${replacedText(value.replaced, ({ tier }) => `tier ${tier}`)}`,
    }
  },
})

const membersDeleteCommand: Command = command({
  name: 'members delete',
  summary: 'Remove a caller from its tier',
  description: 'The caller is limited like callers without a tier.',
  args: { dimension: needed('Dimension of the caller.'), entity: needed('The caller.') },
  flags: {},
  examples: ['members delete tenant acme'],
  asksService: true,
  run: async ({ args: { dimension, entity } }, { client }) => {
    await client.call('deleteMember', { parameters: { dimension, entity } })
    return { value: { deleted: { dimension, entity } }, text: `Removed ${dimension}:${entity} from its tier.` }
  },
})

function memberTable(items: readonly Stored<Membership>[]): string {
  const rows = items.map(({ entry, revision, changedBy }) => [
    entry.dimension,
    entry.entity,
    entry.tier,
    instantText(entry.expiresAt),
    String(revision),
    changedBy,
  ])
  return table(['dimension', 'entity', 'tier', 'expires', 'revision', 'by'], rows)
}

export const memberCommands: readonly Command[] = [membersListCommand, membersPutCommand, membersDeleteCommand]
