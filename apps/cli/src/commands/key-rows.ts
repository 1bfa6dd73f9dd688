import type { ApiKey, IssuedApiKey } from '@sluice/contract'
import type { CommandResult } from '../command.ts'
import { instantText, table } from '../output/table.ts'

/** API keys, for people. */
export function keyTable(keys: readonly ApiKey[]): string {
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
export function issuedResult(value: IssuedApiKey, done: string): CommandResult {
  return { value, text: `${done}\n${keyTable([value.apiKey])}\n\nAPI key (shown once, save it now):\n  ${value.token}` }
}
