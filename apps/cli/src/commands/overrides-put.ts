import type { OverrideTerms } from '@sluice/contract'
import { usageError } from '../cli-error.ts'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { present } from '../parsing/caller-flags.ts'
import type { Flags, GivenFlags } from '../parsing/flag.ts'
import { flag } from '../parsing/flag.ts'
import { needed } from '../parsing/positional.ts'
import { shown } from '../parsing/shown.ts'
import { overrideTable, termsText } from './override-rows.ts'
import { replacedText } from './replaced-text.ts'

const FLAGS = {
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
  flags: FLAGS,
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

function termsOf({ limit, window, burst, multiplier }: GivenFlags<typeof FLAGS>): OverrideTerms {
  if ((limit === undefined) === (multiplier === undefined)) {
    throw usageError('Pass one of --limit and --multiplier.')
  }
  if (limit !== undefined && limit !== 'off' && !/^\d{1,15}$/.test(limit)) {
    throw usageError(`--limit got ${shown(limit)}; expected a whole number or off.`)
  }
  return present({ limit: limit === undefined || limit === 'off' ? limit : Number(limit), window, burst, multiplier })
}
