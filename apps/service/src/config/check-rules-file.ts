import { engineTarget } from '@sluice/config-store'
import type { Clock } from '@sluice/core'
import { memoryStore, systemClock } from '@sluice/core'
import { undeclaredDimensions } from '@sluice/core/internal'
import type { UndeclaredDimension } from '@sluice/core/policy'
import { PolicyEngine } from '@sluice/core/policy'
import type { Settings } from '../settings/settings.ts'
import { FileConfigReads } from './config-reads.ts'
import { followGatewayFile, followRulesFile } from './rule-source.ts'
import { StateSizeCheck } from './state-size-check.ts'

/** Content of a valid rules file. */
export interface RulesFileSummary {
  /** Number of rules; 0 if the settings name no rules file. */
  readonly rules: number
  /** Dimensions that may be misspelt. The service starts with them, but is degraded. */
  readonly undeclared: readonly UndeclaredDimension[]
}

/**
 * Loads the rules file of the settings into a temporary engine, with the code that the service uses. The service does
 * this before it starts anything; `sluice rules validate` and `sluice doctor` do only this. Rejects with a
 * `RuleSetError` that has all problems of the file.
 */
export async function checkRulesFile(settings: Settings, clock: Clock = systemClock): Promise<RulesFileSummary> {
  const { rulesFile, gateway } = settings
  if (rulesFile === undefined) {
    if (gateway?.file !== undefined) await checkGatewayFile(gateway.file, clock)
    return { rules: 0, undeclared: [] }
  }
  const store = memoryStore({ clock })
  const reads = new FileConfigReads(rulesFile, new StateSizeCheck(settings))
  const target = reads.watch(engineTarget(new PolicyEngine({ store, clock })))
  const follower = followRulesFile(rulesFile, { target, clock })
  try {
    await follower.ready()
    const { enforced } = await reads.versions.current()
    const version = enforced && (await reads.versions.get(enforced.number))
    if (version === undefined) return { rules: 0, undeclared: [] }
    return { rules: version.ruleSet.rules.length, undeclared: undeclaredDimensions(version.ruleSet) }
  } finally {
    await follower.close()
    await store.close()
  }
}

async function checkGatewayFile(path: string, clock: Clock): Promise<void> {
  const follower = followGatewayFile(path, { clock })
  try {
    await follower.ready()
  } finally {
    await follower.close()
  }
}
