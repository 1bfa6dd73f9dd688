import type { ApiKey, IssuedApiKey } from '@sluice/contract'
import type { Command, CommandResult } from '../../command-line/command.ts'
import { allItems, choice, command, flag, LARGEST_PAGE, needed } from '../../command-line/command.ts'
import { present } from '../../command-line/shared-flags.ts'
import { usageError } from '../../output/cli-error.ts'
import { instantText, table } from '../../output/text.ts'

const keysListCommand: Command = command({
  name: 'keys list',
  summary: 'List API keys',
  description: 'All keys without their secrets, including expired and revoked ones. With --json: items.',
  args: {},
  flags: {},
  examples: ['keys list'],
  asksService: true,
  run: async (_, context) => {
    const items = await allItems(context.client.items('listApiKeys', { parameters: { limit: LARGEST_PAGE } }), context)
    return { value: { items }, text: keyTable(items) }
  },
})

const keysCreateCommand: Command = command({
  name: 'keys create',
  summary: 'Create an API key',
  description:
    'Prints the key once: the service stores only a hash of it. With --json: apiKey, and token with the key itself.',
  args: { name: needed('Name of the key, shown in the audit log.') },
  flags: {
    role: choice(
      ['admin', 'editor', 'viewer', 'none'],
      'Required. admin: everything; editor: change rules and callers; viewer: read; none: only use the check API.',
    ),
    tenant: flag('text', '<id>', 'Tenant of the key.'),
    tier: flag('text', '<name>', 'Tier of the key.'),
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

const keysRotateCommand: Command = command({
  name: 'keys rotate',
  summary: 'Replace an API key',
  description:
    'Creates a new key with the same role and revokes the old one, at once or after --overlap. Prints the new key ' +
    'once. With --json: apiKey and token.',
  args: { id: needed('Public part of the key, slk_...') },
  flags: { overlap: flag('duration', '<duration>', 'How long the old key stays valid. Default: 0s.') },
  examples: ['keys rotate slk_4f9d1c --overlap 1h'],
  asksService: true,
  run: async ({ args: { id }, flags: { overlap: overlapMs } }, { client }) =>
    issuedResult(
      await client.call('rotateApiKey', { parameters: { id: keyId(id) }, body: present({ overlapMs }) }),
      `Replaced the API key ${keyId(id)}.`,
    ),
})

const keysRevokeCommand: Command = command({
  name: 'keys revoke',
  summary: 'Revoke an API key',
  description: 'Takes effect at once on this node, and on all nodes within seconds.',
  args: { id: needed('Public part of the key, slk_...') },
  flags: {},
  examples: ['keys revoke slk_4f9d1c'],
  asksService: true,
  run: async ({ args: { id } }, { client }) => {
    await client.call('revokeApiKey', { parameters: { id: keyId(id) } })
    return { value: { revoked: { id: keyId(id) } }, text: `Revoked the API key ${keyId(id)}.` }
  },
})

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

/** Result with a new key, whose token is never shown again. `done`: success message. */
function issuedResult(value: IssuedApiKey, done: string): CommandResult {
  return { value, text: `${done}\n${keyTable([value.apiKey])}\n\nAPI key (shown once, save it now):\n  ${value.token}` }
}

/** The public part of an API key. A user may pass the whole key: the secret must not be sent or printed. */
function keyId(text: string): string {
  return text.replace(/^(slk_[0-9A-Za-z]+)_.*$/s, '$1')
}

export const keyCommands: readonly Command[] = [
  keysListCommand,
  keysCreateCommand,
  keysRotateCommand,
  keysRevokeCommand,
]
