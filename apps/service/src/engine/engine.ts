import type { ConfigFollower } from '@sluice/config-store'
import { engineTarget } from '@sluice/config-store'
import type { Clock, Rule, SharedMemoryHandle, Store } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { Block, PolicyEngine } from '@sluice/core/policy'
import type { Logger } from '@sluice/runtime'
import type { AnnounceBlock } from '../alerts/block-export.ts'
import { ApiKeyCache } from '../auth/authenticator.ts'
import { FileConfigReads } from '../config/config-reads.ts'
import type { DataFolder } from '../config/data-folder.ts'
import { FileSettingsWatch } from '../config/file-settings-watch.ts'
import type { FollowedDatabase } from '../config/follow-changes.ts'
import type { ReconnectingConfigStore } from '../config/reconnecting-config-store.ts'
import type { RuleSourceParts } from '../config/rule-source.ts'
import { databaseCheck, followDatabase, followRules, gatewayWarner, rulesCheck } from '../config/rule-source.ts'
import { StateSizeCheck } from '../config/state-size-check.ts'
import { errorFields } from '../observability/error-fields.ts'
import type { Instrument } from '../observability/instrument.ts'
import { ObservedEngine } from '../observability/instrument.ts'
import { apiKeyDigests } from '../observability/top-callers.ts'
import type { CheckHealth } from '../operations/health.ts'
import type { Settings } from '../settings/settings.ts'
import type { ThreadGroup } from '../thread-messages/message-bus.ts'
import { openCounterStore, readNodeCount, saveNodeCount } from './counter-store.ts'

/** Limit of requests that no rule matches, with `--default-limit`. */
const DEFAULT_RULE: Rule = { limit: 100, window: '1m' }

/** What {@link openEngine} needs. */
export interface EngineParts {
  readonly settings: Settings
  readonly clock: Clock
  readonly log: Logger
  readonly folder: DataFolder
  /** API keys, blocks and incident, and rules unless they come from a file. Not closed by the engine. */
  readonly database: ReconnectingConfigStore
  /** Memory shared by threads; undefined with one thread or with Redis. */
  readonly shared: SharedMemoryHandle | undefined
  readonly instrument: Instrument
  /** Monotonic milliseconds, with fractions. */
  readonly monotonicMs: () => number
  /** The first thread writes files for all. */
  readonly threads: Pick<ThreadGroup<unknown>, 'index'>
  readonly announceBlock: AnnounceBlock
  /** Key of digests; read at each use. */
  readonly secret: Uint8Array
  /** Called with the parts for the gateway whenever the rules file has taken effect. */
  readonly onGateway: RuleSourceParts['onGateway']
}

/** The policy engine of one thread with its store and its configuration. */
export interface DecisionEngine {
  readonly store: Store
  readonly engine: PolicyEngine
  /** Undefined if rules come from a file. */
  readonly config: ReconnectingConfigStore | undefined
  readonly follower: ConfigFollower
  readonly keys: ApiKeyCache
  /** The rules file; undefined if rules come from the database. */
  readonly file: FileConfigReads | undefined
  /** The database next to a rules file; undefined if rules come from the database. */
  readonly besideFile: FollowedDatabase | undefined
  readonly checks: readonly CheckHealth[]
  /** Resolves when rules are loaded, or after some seconds. Rejects if the rules file is invalid. */
  startFollowing(): Promise<void>
  /** Resolves when the store is connected, or after the given milliseconds. */
  connected(withinMs: number): Promise<void>
  stopFollowing(): Promise<void>
  closeStore(): Promise<void>
}

/** Maximum number of waiting `acquire` requests per thread. Further ones get an answer at once. */
const MAX_WAITING = 1000

/** Opens the store and follows the rules of the settings. */
export function openEngine(parts: EngineParts): DecisionEngine {
  const { settings, clock, log, folder, database, instrument, monotonicMs } = parts
  const counters = openCounterStore(settings, {
    clock,
    shared: parts.shared,
    observe: instrument.observeStore,
    observeLeases: instrument.observeLeases,
    onWarning: ({ code, message }) => log.warn('Redis is misconfigured', { code, advice: message }),
    initialNodes: Math.max(settings.threads, readNodeCount(folder.nodeCount) ?? 1),
    onNodesChange: (nodes) => {
      if (parts.threads.index === 0) keepNodeCount(nodes, parts)
    },
  })
  const { store } = counters
  const nowMs = (): number => clock.nowMicros() / MICROS_PER_MS
  const keepBlock = (block: Block): Promise<unknown> => {
    parts.announceBlock({ kind: 'created', block })
    return database.blocks.put(block, { name: 'penalty' })
  }
  const engine = new ObservedEngine(
    {
      ...{ store, clock, observer: instrument.observePolicy, keepBlock, maxWaiting: MAX_WAITING },
      neverBlock: settings.trustedProxies,
      apiKeyDigest: apiKeyDigests(parts.secret),
      ...(settings.defaultLimit && { defaultRule: DEFAULT_RULE }),
    },
    { observer: instrument, monotonicMs },
  )
  const keys = new ApiKeyCache()
  const target = engineTarget(engine, { others: keys })
  const file =
    settings.rulesFile === undefined ? undefined : new FileConfigReads(settings.rulesFile, new StateSizeCheck(settings))
  const following = { settings, database, clock, observe: instrument.observeConfig, cachePath: folder.rulesCache }
  const fileSettings = file && new FileSettingsWatch({ file: file.file, log, settings })
  const onService: RuleSourceParts['onService'] = (service) => {
    if (parts.threads.index === 0) fileSettings?.look(service)
  }
  const warn = settings.gateway === undefined ? undefined : gatewayWarner(settings, log)
  const onGateway: RuleSourceParts['onGateway'] = (gateway, ruleSet) => {
    parts.onGateway(gateway, ruleSet)
    if (parts.threads.index === 0) warn?.(gateway, ruleSet)
  }
  const follower = followRules({ ...following, onService, onGateway, target: file?.watch(target) ?? target })
  const beside = file && followDatabase({ ...following, target: file.beside(target) })
  const stopFollowing = async (): Promise<void> => {
    await Promise.all([follower.close(), beside?.close()])
  }
  return {
    store,
    engine,
    config: file === undefined ? database : undefined,
    follower,
    keys,
    file,
    besideFile: beside && { config: database, follower: beside },
    checks: [
      () => counters.check(),
      () => rulesCheck(follower, { settings, nowMs: nowMs(), undeclared: engine.undeclaredDimensions }),
      ...(beside === undefined ? [] : [() => databaseCheck(beside, settings, nowMs())]),
    ],
    async startFollowing() {
      try {
        await Promise.all([follower.ready(), beside?.ready()])
      } catch (error) {
        // An invalid file must be corrected by the operator; a database may become reachable.
        if (file !== undefined && follower.stats().source === 'none') {
          await stopFollowing()
          throw error
        }
        log.warn('no configuration was loaded yet', { error: errorFields(error) })
      }
    },
    stopFollowing,
    connected: (withinMs) => counters.connected(withinMs),
    closeStore: () => counters.close(),
  }
}

/** Saves the node count for the next start. Limits apply without it. */
function keepNodeCount(nodes: number, { folder, log }: Pick<EngineParts, 'folder' | 'log'>): void {
  try {
    saveNodeCount(folder.nodeCount, nodes)
  } catch (error) {
    log.warn('could not save the node count', { nodes, error: errorFields(error) })
  }
}
