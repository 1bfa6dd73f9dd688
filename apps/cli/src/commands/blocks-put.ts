import { usageError } from '../cli-error.ts'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { instantText } from '../output/table.ts'
import { present } from '../parsing/caller-flags.ts'
import { durationMs } from '../parsing/duration.ts'
import { flag } from '../parsing/flag.ts'
import { needed } from '../parsing/positional.ts'
import { shown } from '../parsing/shown.ts'
import { blockTable } from './block-rows.ts'
import { replacedText } from './replaced-text.ts'

/** Blocks a caller. */
export const blocksPutCommand: Command = command({
  name: 'blocks put',
  summary: 'Block a caller',
  description:
    'Denies all requests of a caller from now on. With --json: entry, revision, changedAt, changedBy, and replaced where it was blocked before.',
  args: {
    dimension: needed('What kind of caller: ip, user, tenant, apiKey, ...'),
    entity: needed('The caller.'),
    duration: needed('For how long, such as 15m or 1h30m.'),
  },
  flags: { reason: flag('text', '<text>', 'Why, in words.') },
  examples: ['blocks put ip 192.0.2.7 1h --reason "abuse report 4711"'],
  asksService: true,
  run: async ({ args, flags: { reason } }, { client }) => {
    if (durationMs(args.duration) === undefined) {
      throw usageError(`${shown(args.duration)} is no duration; expected one such as 15m or 1h30m.`)
    }
    const value = await client.call('putBlock', { body: { ...args, ...present({ reason }) } })
    const before = replacedText(value.replaced, ({ until }) => `until ${instantText(until)}`)
    return {
      value,
      text: `Blocked ${args.dimension}:${args.entity} for ${args.duration}.\n${blockTable([value])}${before}`,
    }
  },
})
