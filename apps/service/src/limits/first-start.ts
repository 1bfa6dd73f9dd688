import type { ConfigStore } from '@sluice/config-store'
import type { RuleSet } from '@sluice/core'
import { isSluiceError } from '@sluice/core'
import type { Sleep } from '@sluice/runtime'

/** What is enforced until somebody says otherwise: enough for a person, too little for a flood. */
export const FIRST_RULES: RuleSet = {
  rules: [
    { name: 'default-user', resource: '*', dimension: 'user', limit: 100, window: '1m' },
    { name: 'default-ip', resource: '*', dimension: 'ip', limit: 100, window: '1s' },
  ],
}

const AUTHOR = { name: 'first start' }

/** How long a node that finds rules and no key leaves the node that wrote the rules to make one. */
const OTHERS_TIME_MS = 1000

/** How an empty configuration is made usable. */
export interface FirstStartOptions {
  readonly sleep: Sleep
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
  { sleep, withRules }: FirstStartOptions,
): Promise<string | undefined> {
  const isFirst = !withRules || (await enforceFirstRules(config))
  if (!isFirst) {
    if (await hasKeys(config)) return undefined
    await sleep(OTHERS_TIME_MS)
  }
  if (await hasKeys(config)) return undefined
  const { token } = await config.apiKeys.create({ name: 'first', role: 'admin' }, AUTHOR)
  return token
}

async function enforceFirstRules(config: ConfigStore): Promise<boolean> {
  const { items } = await config.versions.list({ limit: 1 })
  if (items.length > 0) return false
  try {
    await config.versions.edit(() => FIRST_RULES, AUTHOR, 0)
    return true
  } catch (error) {
    // Another node was quicker.
    if (isSluiceError(error, 'SLUICE_CONFLICT')) return false
    throw error
  }
}

async function hasKeys(config: ConfigStore): Promise<boolean> {
  return (await config.apiKeys.list({ limit: 1 })).items.length > 0
}
