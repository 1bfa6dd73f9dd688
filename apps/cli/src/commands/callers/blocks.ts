import type { Block, Stored } from '@sluice/contract'
import type { Command } from '../../command-line/command.ts'
import { allItems, checkDuration, command, flag, LARGEST_PAGE, needed } from '../../command-line/command.ts'
import { present } from '../../command-line/shared-flags.ts'
import { instantText, replacedText, table } from '../../output/text.ts'

const blocksListCommand: Command = command({
  name: 'blocks list',
  summary: 'List blocked callers',
  description: 'Blocks set by hand or by the penalty of a rule. With --json: items.',
  args: {},
  flags: { dimension: flag('text', '<name>', 'Only callers of this dimension.') },
  examples: ['blocks list --dimension ip'],
  asksService: true,
  run: async ({ flags: { dimension } }, context) => {
    const parameters = { limit: LARGEST_PAGE, ...present({ dimension }) }
    const items = await allItems(context.client.items('listBlocks', { parameters }), context)
    return { value: { items }, text: blockTable(items) }
  },
})

const blocksPutCommand: Command = command({
  name: 'blocks put',
  summary: 'Block a caller',
  description:
    'Denies all requests of a caller. With --json: entry, revision, changedAt, changedBy, and replaced if it was ' +
    'blocked before.',
  args: {
    dimension: needed('Dimension of the caller: ip, user, tenant, apiKey, ...'),
    entity: needed('The caller.'),
    duration: needed('Duration such as 15m or 1h30m.'),
  },
  flags: { reason: flag('text', '<text>', 'Reason, as free text.') },
  examples: ['blocks put ip 192.0.2.7 1h --reason "abuse report 4711"'],
  asksService: true,
  run: async ({ args, flags: { reason } }, { client }) => {
    checkDuration(args.duration)
    const value = await client.call('putBlock', { body: { ...args, ...present({ reason }) } })
    const before = replacedText(value.replaced, ({ until }) => `until ${instantText(until)}`)
    return {
      value,
      text: `Blocked ${args.dimension}:${args.entity} for ${args.duration}.\n${blockTable([value])}${before}`,
    }
  },
})

const blocksLiftCommand: Command = command({
  name: 'blocks lift',
  summary: 'Lift a block',
  description: 'Removes the block and the violations that led to it. Applies to the next request.',
  args: { dimension: needed('Dimension of the caller.'), entity: needed('The caller.') },
  flags: {},
  examples: ['blocks lift ip 192.0.2.7'],
  asksService: true,
  run: async ({ args: { dimension, entity } }, { client }) => {
    await client.call('deleteBlock', { parameters: { dimension, entity } })
    return { value: { lifted: { dimension, entity } }, text: `Lifted the block of ${dimension}:${entity}.` }
  },
})

function blockTable(items: readonly Stored<Block>[]): string {
  const rows = items.map(({ entry, changedBy }) => [
    entry.dimension,
    entry.entity,
    instantText(entry.until),
    String(entry.strikes),
    entry.rule ?? '-',
    changedBy,
    entry.reason ?? '-',
  ])
  return table(['dimension', 'entity', 'until', 'strikes', 'rule', 'by', 'reason'], rows)
}

export const blockCommands: readonly Command[] = [blocksListCommand, blocksPutCommand, blocksLiftCommand]
