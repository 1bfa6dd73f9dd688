import type {
  ConfigFollower,
  ConfigObserver,
  ConfigStats,
  ConfigTarget,
  FileConfig,
  FileConfigOptions,
} from '@sluice/config-store'
import { fileConfig, followConfig } from '@sluice/config-store'
import type { ReadinessReason } from '@sluice/contract'
import type { Clock } from '@sluice/core'
import { urlWithoutSecrets } from '@sluice/core/options'
import type { UndeclaredDimension } from '@sluice/core/policy'
import type { HealthCheck } from '../operations/health.ts'
import type { Settings } from '../settings.ts'
import type { LateConfigStore } from './late-config-store.ts'

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

/** Dimensions that a reason names at most. */
const MOST_NAMES = 5

/** Begins to follow the file or the database that the settings name. */
export function followRules(parts: RuleSourceParts & { readonly target: ConfigTarget }): ConfigFollower {
  const { settings, clock, observe, onService, target } = parts
  return settings.rulesFile === undefined
    ? followDatabase(parts)
    : followRulesFile(settings.rulesFile, { target, clock, observe, onService })
}

/** Begins to follow a file. A file cannot define functions, so its rules cannot name any. */
export function followRulesFile(path: string, options: Omit<FileConfigOptions, 'costFunctions'>): FileConfig {
  return fileConfig(path, { ...options, costFunctions: [] })
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
      source: settings.databaseUrl === undefined ? 'embedded' : urlWithoutSecrets(settings.databaseUrl),
    },
  })
}

/** What rules are looked at with. */
export interface RulesCheckParts {
  readonly settings: Settings
  readonly nowMs: number
  /** Dimensions of the rules in force that are neither built in nor declared. */
  readonly undeclared: readonly UndeclaredDimension[]
}

/** Whether there are rules to decide by, where from, and whether they are what they should be. */
export function rulesCheck(
  follower: Pick<ConfigFollower, 'stats' | 'hasRules'>,
  { settings, nowMs, undeclared }: RulesCheckParts,
): HealthCheck {
  const stats = follower.stats()
  const place = sourceOf(settings)
  const reasons = [
    ...unreachableReasons(stats, { place, nowMs }),
    ...refusedReasons(stats),
    ...undeclaredReasons(undeclared),
  ]
  if (!follower.hasRules) {
    const why = reasons.map(({ message }) => message).join(' ') || 'They are still being loaded.'
    const none: ReadinessReason = {
      code: 'no-rules',
      message: `No rules are known, so checks are answered with 503. ${why}`,
    }
    return { name: 'config', ready: false, detail: 'no rules were loaded yet', reasons: [none, ...reasons] }
  }
  const detail = `version ${stats.enforcedVersion} from ${stats.source}, ${currencyOf(stats, nowMs)}`
  return { name: 'config', ready: true, detail, reasons }
}

/** How the database stands beside a file of rules: blocks, the incident and API keys come from it. */
export function databaseCheck(follower: Pick<ConfigFollower, 'stats'>, settings: Settings, nowMs: number): HealthCheck {
  const stats = follower.stats()
  const reasons = unreachableReasons(stats, { place: databaseOf(settings), nowMs })
  return { name: 'database', ready: true, detail: currencyOf(stats, nowMs), reasons }
}

function unreachableReasons(
  { unavailableSince, source }: ConfigStats,
  { place, nowMs }: { readonly place: string; readonly nowMs: number },
): readonly ReadinessReason[] {
  if (unavailableSince === undefined) return []
  const meanwhile =
    source === 'none'
      ? 'It is tried again by itself.'
      : 'What was known last stays active, and changes are not possible. It is tried again by itself.'
  const message = `${place} has not been readable for ${secondsText(nowMs - unavailableSince)}. ${meanwhile} The log has the error.`
  return [{ code: 'config-unreachable', message }]
}

/** Why a version is not used, the log says: not everybody who asks for health may read rules. */
function refusedReasons({ refused, enforcedVersion }: ConfigStats): readonly ReadinessReason[] {
  return refused.map(({ number }): ReadinessReason => {
    const what = number === 0 ? 'The database has no enforced version.' : `Version ${number} cannot be used.`
    const kept = enforcedVersion === undefined ? '' : ` Version ${enforcedVersion} stays active.`
    return { code: 'version-refused', message: `${what}${kept} The log says why; enforce a version that can be used.` }
  })
}

/** Names dimensions only, which metrics show too: not everybody who asks for health may read rules. */
function undeclaredReasons(undeclared: readonly UndeclaredDimension[]): readonly ReadinessReason[] {
  if (undeclared.length === 0) return []
  const names = new Map(undeclared.map(({ dimension, nearest }) => [dimension, nearest]))
  const shown = Array.from(names, ([dimension, nearest]) =>
    nearest === undefined ? `"${dimension}"` : `"${dimension}" (did you mean "${nearest}"?)`,
  )
  const more = shown.length > MOST_NAMES ? ` and ${shown.length - MOST_NAMES} more` : ''
  const list = `${shown.slice(0, MOST_NAMES).join(', ')}${more}`
  const message = `Rules use dimensions that are neither built in nor declared: ${list}. Correct them, or list them under "dimensions" in the rule set; until then such rules may match no request.`
  return [{ code: 'dimension-undeclared', message }]
}

function sourceOf(settings: Settings): string {
  return settings.rulesFile === undefined ? databaseOf(settings) : `The file ${settings.rulesFile}`
}

function databaseOf({ databaseUrl, dataDir }: Settings): string {
  const place = databaseUrl === undefined ? `SQLite in ${dataDir}` : urlWithoutSecrets(databaseUrl)
  return `The configuration database (${place})`
}

/** How current rules are: when they were last known to be all there is. */
function currencyOf(
  { unavailableSince, lastRefreshAt }: Pick<ConfigStats, 'unavailableSince' | 'lastRefreshAt'>,
  nowMs: number,
): string {
  if (unavailableSince !== undefined) return `not readable for ${secondsText(nowMs - unavailableSince)}`
  return lastRefreshAt === undefined ? 'not confirmed yet' : `confirmed ${secondsText(nowMs - lastRefreshAt)} ago`
}

function secondsText(ms: number): string {
  return `${(Math.max(0, ms) / 1000).toFixed(1)} s`
}
