import type { ConfigFollower, ConfigObserver, ConfigStats, ConfigTarget, FileConfigOptions } from '@sluice/config-store'
import { fileConfig, followConfig } from '@sluice/config-store'
import type { ReadinessCheck } from '@sluice/contract'
import type { Clock } from '@sluice/core'
import type { Settings } from '../settings.ts'
import type { LateConfigStore } from './late-config-store.ts'
import { shownUrl } from './shown-url.ts'

/** What configuration is followed with. */
export interface RuleSourceParts {
  readonly settings: Settings
  readonly database: LateConfigStore
  readonly clock: Clock
  readonly observe: ConfigObserver
  /** Where the last good configuration is kept for a start without the database. */
  readonly cachePath: string
  /** Is told of the settings in a file that rules come from, whenever it is read. */
  readonly onService: NonNullable<FileConfigOptions['onService']>
}

/** How long a start waits for configuration before requests are taken without. */
const WAIT_MS = 3000

/** Begins to follow the file or the database that the settings name. */
export function followRules(parts: RuleSourceParts & { readonly target: ConfigTarget }): ConfigFollower {
  const { settings, clock, observe, onService, target } = parts
  return settings.rulesFile === undefined
    ? followDatabase(parts)
    : fileConfig(settings.rulesFile, { target, clock, observe, onService })
}

/** Begins to follow the database, also where the rules come from a file. */
export function followDatabase(
  parts: Omit<RuleSourceParts, 'onService'> & { readonly target: ConfigTarget },
): ConfigFollower {
  const { settings, database, clock, observe, cachePath, target } = parts
  return followConfig({
    feed: async () => (await database.opened()).feed,
    target,
    clock,
    observe,
    waitMs: WAIT_MS,
    cache: {
      path: cachePath,
      source: settings.databaseUrl === undefined ? 'embedded' : shownUrl(settings.databaseUrl),
    },
  })
}

/** Whether there are rules to go by, where from, and whether they are what they should be. */
export function rulesCheck(follower: Pick<ConfigFollower, 'stats'>): ReadinessCheck {
  const stats = follower.stats()
  const { source, enforcedVersion } = stats
  if (source === 'none') return { name: 'config', ready: false, detail: 'no rules were loaded yet' }
  const version = enforcedVersion === undefined ? 'no version' : `version ${enforcedVersion}`
  return { name: 'config', ready: true, detail: `${version} from ${source}, ${currencyOf(stats)}` }
}

/** How current rules are. Why a version is not used, the log says: not everybody who asks for health may read rules. */
export function currencyOf({ lagMs, refused }: Pick<ConfigStats, 'lagMs' | 'refused'>): string {
  const [latest] = refused
  const behind = lagMs === 0 ? undefined : `${(lagMs / 1000).toFixed(1)} s behind`
  if (latest === undefined) return behind ?? 'up to date'
  const unused = `while version ${latest.number} cannot be used, see the log`
  return behind === undefined ? unused : `${behind}, ${unused}`
}
