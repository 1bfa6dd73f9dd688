import { engineTarget } from '@sluice/config-store'
import type { Clock } from '@sluice/core'
import { memoryStore, PolicyEngine, systemClock } from '@sluice/core'
import type { Settings } from '../settings.ts'
import { FileConfigReads } from './file-config.ts'
import { followRulesFile } from './rule-source.ts'
import { StateSizeCheck } from './state-size-check.ts'

/**
 * Loads the rules file that the settings name into an engine of its own, with the parts that the service itself follows the file
 * with, and discards it. The service does this before it starts anything else; `sluice rules validate` and `sluice doctor` do
 * only this. Resolves with the number of rules: 0 when the settings name no rules file. Rejects with a `RuleSetError` that has
 * everything that is wrong with the file.
 */
export async function checkRulesFile(settings: Settings, clock: Clock = systemClock): Promise<number> {
  const { rulesFile } = settings
  if (rulesFile === undefined) return 0
  const store = memoryStore({ clock })
  const reads = new FileConfigReads(rulesFile, new StateSizeCheck(settings))
  const target = reads.watch(engineTarget(new PolicyEngine({ store, clock })))
  const follower = followRulesFile(rulesFile, { target, clock })
  try {
    await follower.ready()
    const { enforced } = await reads.versions.current()
    const version = enforced && (await reads.versions.get(enforced.number))
    return version?.ruleSet.rules.length ?? 0
  } finally {
    await follower.close()
    await store.close()
  }
}
