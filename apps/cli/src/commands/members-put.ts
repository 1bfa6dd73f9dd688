import type { Membership } from '@sluice/contract'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { present } from '../parsing/caller-flags.ts'
import { flag } from '../parsing/flag.ts'
import { needed } from '../parsing/positional.ts'
import { memberTable } from './member-rows.ts'
import { replacedText } from './replaced-text.ts'

/** Puts a caller into a tier. */
export const membersPutCommand: Command = command({
  name: 'members put',
  summary: 'Put a caller into a tier',
  description:
    'A caller belongs to at most one tier, so this replaces its previous one. With --json: entry, revision, changedAt, changedBy, and replaced where it belonged to one.',
  args: {
    dimension: needed('What kind of caller: user, apiKey or tenant.'),
    entity: needed('The caller.'),
    tier: needed('The name of the tier.'),
  },
  flags: {
    expires: flag('instant', '<when>', 'When the membership ends. Default: never.'),
    'if-revision': flag('whole', '<revision>', 'Only when it still has this revision; 0: only when there is none.'),
  },
  examples: ['members put tenant acme premium --expires 30d'],
  asksService: true,
  run: async ({ args, flags: { expires: expiresAt, 'if-revision': ifMatch } }, { client }) => {
    const body = { ...args, ...present({ expiresAt }) } as Membership
    const value = await client.call('putMember', { body, ifMatch })
    return {
      value,
      text: `Put ${args.dimension}:${args.entity} into tier ${args.tier}.\n${memberTable([value])}${replacedText(value.replaced, ({ tier }) => `tier ${tier}`)}`,
    }
  },
})
