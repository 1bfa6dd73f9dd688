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

/** How an empty configuration is made usable. */
export interface FirstStartOptions {
  /** Whether {@link FIRST_RULES} are enforced where nothing is; not when rules come from elsewhere. */
  readonly withRules: boolean
}

/**
 * Makes an empty configuration usable: enforces {@link FIRST_RULES}, and makes the first API key, which may do everything. Says
 * its token, which is kept nowhere; undefined when there was a key already. Several nodes may do this at the same time: one key
 * is made.
 */
export async function prepareFirstStart(
  config: ConfigStore,
  { withRules }: FirstStartOptions,
): Promise<string | undefined> {
  if (withRules) await enforceFirstRules(config)
  const first = await config.apiKeys.createFirst({ name: 'first', role: 'admin' }, AUTHOR)
  return first?.token
}

async function enforceFirstRules(config: ConfigStore): Promise<void> {
  const { items } = await config.versions.list({ limit: 1 })
  if (items.length > 0) return
  try {
    await config.versions.edit(() => FIRST_RULES, AUTHOR, 0)
  } catch (error) {
    // Another node was quicker.
    if (!isSluiceError(error, 'SLUICE_CONFLICT')) throw error
  }
}
