import { dirname, resolve } from 'node:path'
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
import { checkGatewayConfig, type GatewayConfig, gatewayWarnings } from '@sluice/gateway'
import type { Logger } from '@sluice/runtime'
import type { HealthCheck } from '../operations/health.ts'
import type { Settings } from '../settings/settings.ts'
import type { ReconnectingConfigStore } from './reconnecting-config-store.ts'

export interface RuleSourceParts {
  readonly settings: Settings
  readonly database: ReconnectingConfigStore
  readonly clock: Clock
  readonly observe: ConfigObserver
  /** File with the last good configuration, for a start without the database. */
  readonly cachePath: string
  /** Called with the settings in the rules file whenever it is read. */
  readonly onService: NonNullable<FileConfigOptions['onService']>
  /** Called with the parts for the gateway whenever the rules file has taken effect. */
  readonly onGateway: NonNullable<FileConfigOptions['onGateway']>
}

/** How long a start waits for the configuration. */
const WAIT_MS = 3000

/** Maximum number of dimensions in a reason. */
const MOST_NAMES = 5

/** Follows the file or the database of the settings. */
export function followRules(parts: RuleSourceParts & { readonly target: ConfigTarget }): ConfigFollower {
  const { settings, clock, observe, onService, onGateway, target } = parts
  return settings.rulesFile === undefined
    ? followDatabase(parts)
    : followRulesFile(settings.rulesFile, { target, clock, observe, onService, onGateway })
}

/** Follows a file. Its rules cannot use functions, because a file cannot define any. */
export function followRulesFile(
  path: string,
  options: Omit<FileConfigOptions, 'costFunctions' | 'checkGateway'>,
): FileConfig {
  const folder = dirname(resolve(path))
  return fileConfig(path, {
    ...options,
    costFunctions: [],
    checkGateway: (parts) => checkGatewayConfig(parts, { folder }),
  })
}

/** Follows a file that has only parts for the gateway: rules come from the database. */
export function followGatewayFile(
  path: string,
  options: Pick<FileConfigOptions, 'clock' | 'observe' | 'onGateway'>,
): FileConfig {
  const folder = dirname(resolve(path))
  return fileConfig(path, {
    ...options,
    target: NO_RULES,
    needsRules: false,
    checkGateway: (parts) => checkGatewayConfig(parts, { folder }),
  })
}

/** Takes rules that are not used. */
const NO_RULES: ConfigTarget = {
  useVersions: () => undefined,
  apply: () => undefined,
  beginReload: () => undefined,
  endReload: () => undefined,
}

/** Follows the database, which a service with a rules file does too. */
export function followDatabase(
  parts: Omit<RuleSourceParts, 'onService' | 'onGateway'> & { readonly target: ConfigTarget },
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

/** Logs what is likely not meant in the routes of a file, each once as long as it stays. */
export function gatewayWarner(
  { defaultLimit }: Pick<Settings, 'defaultLimit'>,
  log: Pick<Logger, 'warn'>,
): RuleSourceParts['onGateway'] {
  let told: ReadonlySet<string> = new Set()
  return (parts, ruleSet) => {
    const all = parts === undefined ? [] : gatewayWarnings(parts as GatewayConfig, ruleSet)
    // What no rule is for has the default limit.
    const found = defaultLimit ? all.filter(({ code }) => code !== 'route-unlimited') : all
    for (const { code, subject, message } of found) if (!told.has(message)) log.warn(message, { code, subject })
    told = new Set(found.map(({ message }) => message))
  }
}

export interface RulesCheckParts {
  readonly settings: Settings
  readonly nowMs: number
  /** Dimensions of the active rules that are neither built in nor declared. */
  readonly undeclared: readonly UndeclaredDimension[]
}

/** Readiness check of the rules: whether there are any, their source, and problems. */
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

/** Readiness check of the database next to a rules file: blocks, incident and API keys come from it. */
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
  const message =
    `${place} has not been readable for ${secondsText(nowMs - unavailableSince)}. ${meanwhile} The log has the ` +
    'error.'
  return [{ code: 'config-unreachable', message }]
}

/** The reason itself is only in the log: health is public, rules are not. */
function refusedReasons({ refused, enforcedVersion }: ConfigStats): readonly ReadinessReason[] {
  return refused.map(({ number }): ReadinessReason => {
    const what = number === 0 ? 'The database has no enforced version.' : `Version ${number} cannot be used.`
    const kept = enforcedVersion === undefined ? '' : ` Version ${enforcedVersion} stays active.`
    return { code: 'version-refused', message: `${what}${kept} The log says why; enforce a version that can be used.` }
  })
}

/** Names only dimensions, which are public in metrics too. */
function undeclaredReasons(undeclared: readonly UndeclaredDimension[]): readonly ReadinessReason[] {
  if (undeclared.length === 0) return []
  const names = new Map(undeclared.map(({ dimension, nearest }) => [dimension, nearest]))
  const shown = Array.from(names, ([dimension, nearest]) =>
    nearest === undefined ? `"${dimension}"` : `"${dimension}" (did you mean "${nearest}"?)`,
  )
  const more = shown.length > MOST_NAMES ? ` and ${shown.length - MOST_NAMES} more` : ''
  const list = `${shown.slice(0, MOST_NAMES).join(', ')}${more}`
  const message =
    `Rules use dimensions that are neither built in nor declared: ${list}. Correct them, or list them under ` +
    '"dimensions" in the rule set; until then such rules may match no request.'
  return [{ code: 'dimension-undeclared', message }]
}

function sourceOf(settings: Settings): string {
  return settings.rulesFile === undefined ? databaseOf(settings) : `The file ${settings.rulesFile}`
}

function databaseOf({ databaseUrl, dataDir }: Settings): string {
  const place = databaseUrl === undefined ? `SQLite in ${dataDir}` : urlWithoutSecrets(databaseUrl)
  return `The configuration database (${place})`
}

/** When the rules were last confirmed to be current. */
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
