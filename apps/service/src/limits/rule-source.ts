import type { ConfigFollower, ConfigObserver, ConfigTarget } from '@sluice/config-store'
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
}

/** How long a start waits for configuration before requests are taken without. */
const WAIT_MS = 3000

/** Begins to follow the file or the database that the settings name. */
export function followRules(parts: RuleSourceParts & { readonly target: ConfigTarget }): ConfigFollower {
  const { settings, clock, observe, target } = parts
  return settings.rulesFile === undefined
    ? followDatabase(parts, target)
    : fileConfig(settings.rulesFile, { target, clock, observe })
}

/** Begins to follow only the API keys of the database. */
export function followKeys(
  parts: RuleSourceParts,
  keys: Pick<ConfigTarget, 'apply' | 'beginReload' | 'endReload'>,
): ConfigFollower {
  return followDatabase(parts, {
    useVersions: () => undefined,
    apply: (changes) => keys.apply(changes),
    beginReload: () => keys.beginReload(),
    endReload: () => keys.endReload(),
  })
}

function followDatabase(
  { settings, database, clock, observe, cachePath }: RuleSourceParts,
  target: ConfigTarget,
): ConfigFollower {
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

/** Whether there are rules to go by, where from, and how old they are. */
export function rulesCheck(follower: ConfigFollower): ReadinessCheck {
  const { source, enforcedVersion, lagMs } = follower.stats()
  if (source === 'none') return { name: 'config', ready: false, detail: 'no rules were loaded yet' }
  const version = enforcedVersion === undefined ? 'no version' : `version ${enforcedVersion}`
  const age = lagMs === 0 ? 'up to date' : `${(lagMs / 1000).toFixed(1)} s behind`
  return { name: 'config', ready: true, detail: `${version} from ${source}, ${age}` }
}
