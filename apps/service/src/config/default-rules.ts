import type { ConfigStore } from '@sluice/config-store'
import type { RuleSet } from '@sluice/core'
import { isSluiceError } from '@sluice/core'

/** Paths that health checks ask for. */
const HEALTH_PATHS = ['/health', '/healthz', '/livez', '/readyz']

/**
 * What is enforced until somebody says otherwise: enough for a person, too little for a flood. An address that goes on asking far
 * too much is blocked: 1,000 denials within a minute are 17 requests a second above the limit for a whole minute, or ten times the
 * limit for about a second.
 */
export const FIRST_RULES: RuleSet = {
  rules: [
    { name: 'default-user', resource: '*', dimension: 'user', limit: 100, window: '1m' },
    {
      ...{ name: 'default-ip', resource: '*', dimension: 'ip', limit: 100, window: '1s' },
      penalty: { after: 1000, within: '1m', block: '5m' },
    },
  ],
  exemptions: HEALTH_PATHS.map((resource) => ({ name: resource.slice(1), match: { resource } })),
  incident: 0.5,
}

const AUTHOR = { name: 'first start' }

/** Enforces {@link FIRST_RULES} where there is no version yet. Several nodes may do this at the same time. */
export async function enforceFirstRules(config: ConfigStore): Promise<void> {
  const { items } = await config.versions.list({ limit: 1 })
  if (items.length > 0) return
  try {
    await config.versions.edit(() => FIRST_RULES, AUTHOR, 0)
  } catch (error) {
    // Another node was quicker.
    if (!isSluiceError(error, 'SLUICE_CONFLICT')) throw error
  }
}
