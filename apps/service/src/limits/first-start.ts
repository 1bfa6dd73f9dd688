import type { ConfigStore } from '@sluice/config-store'
import type { RuleSet } from '@sluice/core'
import { isSluiceError } from '@sluice/core'

/** What is enforced until somebody says otherwise: enough for a person, too little for a flood. */
export const FIRST_RULES: RuleSet = {
  rules: [
    { name: 'default-user', resource: '*', dimension: 'user', limit: 100, window: '1m' },
    { name: 'default-ip', resource: '*', dimension: 'ip', limit: 100, window: '1s' },
  ],
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
