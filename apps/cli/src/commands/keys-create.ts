import { usageError } from '../cli-error.ts'
import type { Command } from '../command.ts'
import { command } from '../command.ts'
import { present } from '../parsing/caller-flags.ts'
import { choice, flag } from '../parsing/flag.ts'
import { needed } from '../parsing/positional.ts'
import { issuedResult } from './key-rows.ts'

/** Creates an API key. */
export const keysCreateCommand: Command = command({
  name: 'keys create',
  summary: 'Create an API key',
  description:
    'Prints the key once: the service stores only a hash of it. With --json: apiKey, and token with the key itself.',
  args: { name: needed('What to call it; stands in the audit log.') },
  flags: {
    role: choice(
      ['admin', 'editor', 'viewer', 'none'],
      'Required. admin: everything; editor: change rules and callers; viewer: read; none: only be limited.',
    ),
    tenant: flag('text', '<id>', 'The tenant it belongs to.'),
    tier: flag('text', '<name>', 'The tier of its holder.'),
    expires: flag('instant', '<when>', 'When it expires. Default: never.'),
  },
  examples: ['keys create deploy --role editor --expires 90d'],
  asksService: true,
  run: async ({ args: { name }, flags }, { client }) => {
    const { role, tenant, tier, expires: expiresAt } = flags
    if (role === undefined) throw usageError('--role is missing: one of admin, editor, viewer, none.')
    const body = { name, role, ...present({ tenant, tier, expiresAt }) }
    return issuedResult(await client.call('createApiKey', { body }), `Created the API key ${name}.`)
  },
})
