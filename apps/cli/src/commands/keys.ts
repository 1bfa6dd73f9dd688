import type { ApiKey, IssuedApiKey } from '@sluice/contract'
import { choice, flag, needed } from '../command-line/arguments.ts'
import type { Command, CommandResult } from '../command-line/command.ts'
import { collected, command } from '../command-line/command.ts'
import { present } from '../command-line/shared-flags.ts'
import { usageError } from '../output/cli-error.ts'
import { instantText, table } from '../output/text.ts'

/** Lists API keys. */
export const keysListCommand: Command = command({
  name: 'keys list',
  summary: 'List API keys',
  description: 'All keys without their secrets, also those that have ended. With --json: items.',
  args: {},
  flags: {},
  examples: ['keys list'],
  asksService: true,
  run: async (_, context) => {
    const items = await collected(context.client.items('listApiKeys', { parameters: { limit: 1000 } }), context)
    return { value: { items }, text: keyTable(items) }
  },
})

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

/** Replaces an API key. */
export const keysRotateCommand: Command = command({
  name: 'keys rotate',
  summary: 'Replace an API key',
  description:
    'Creates a new key with the same role and revokes the old one, at once or after --overlap. Prints the new key once. With --json: apiKey and token.',
  args: { id: needed('The visible part of the key, slk_...') },
  flags: { overlap: flag('duration', '<duration>', 'How long the old key stays valid beside the new one.') },
  examples: ['keys rotate slk_4f9d1c --overlap 1h'],
  asksService: true,
  run: async ({ args: { id }, flags: { overlap: overlapMs } }, { client }) =>
    issuedResult(
      await client.call('rotateApiKey', { parameters: { id: keyId(id) }, body: present({ overlapMs }) }),
      `Replaced the API key ${keyId(id)}.`,
    ),
})

/** Revokes an API key. */
export const keysRevokeCommand: Command = command({
  name: 'keys revoke',
  summary: 'Revoke an API key',
  description: 'It is invalid at once on this node, and on all nodes within seconds.',
  args: { id: needed('The visible part of the key, slk_...') },
  flags: {},
  examples: ['keys revoke slk_4f9d1c'],
  asksService: true,
  run: async ({ args: { id } }, { client }) => {
    await client.call('revokeApiKey', { parameters: { id: keyId(id) } })
    return { value: { revoked: { id: keyId(id) } }, text: `Revoked the API key ${keyId(id)}.` }
  },
})

/** API keys, for people. */
function keyTable(keys: readonly ApiKey[]): string {
  const rows = keys.map(({ id, name, role, tenant, tier, createdAt, expiresAt, revokedAt }) => [
    id,
    name,
    role,
    tenant ?? '-',
    tier ?? '-',
    instantText(createdAt),
    instantText(expiresAt),
    instantText(revokedAt),
  ])
  return table(['id', 'name', 'role', 'tenant', 'tier', 'created', 'expires', 'revoked'], rows)
}

/** A key that was just created: its token is shown here and nowhere else. `done`: what was done, as a sentence. */
function issuedResult(value: IssuedApiKey, done: string): CommandResult {
  return { value, text: `${done}\n${keyTable([value.apiKey])}\n\nAPI key (shown once, save it now):\n  ${value.token}` }
}

/** The visible part of an API key. Whoever gives the whole key gives it away no further than this. */
function keyId(text: string): string {
  return text.replace(/^(slk_[0-9A-Za-z]+)_.*$/s, '$1')
}
