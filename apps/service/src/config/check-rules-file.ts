import { engineTarget } from '@sluice/config-store'
import type { Clock } from '@sluice/core'
import { memoryStore, systemClock } from '@sluice/core'
import { undeclaredDimensions } from '@sluice/core/internal'
import type { UndeclaredDimension } from '@sluice/core/policy'
import { PolicyEngine } from '@sluice/core/policy'
import type { Settings } from '../settings.ts'
import { FileConfigReads } from './config-reads.ts'
import { followRulesFile } from './rule-source.ts'
import { StateSizeCheck } from './state-size-check.ts'

/** What a rules file that can be used contains. */
export interface RulesFileSummary {
  /** Number of rules; 0 when the settings name no rules file. */
  readonly rules: number
  /** Dimensions that may be misspelt. The service starts with them, and is degraded. */
  readonly undeclared: readonly UndeclaredDimension[]
}

/**
 * Loads the rules file that the settings name into an engine of its own, with the parts that the service itself follows the file
 * with, and discards it. The service does this before it starts anything else; `sluice rules validate` and `sluice doctor` do
 * only this. Rejects with a `RuleSetError` that has everything that is wrong with the file.
 */
export async function checkRulesFile(settings: Settings, clock: Clock = systemClock): Promise<RulesFileSummary> {
  const { rulesFile } = settings
  if (rulesFile === undefined) return { rules: 0, undeclared: [] }
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
