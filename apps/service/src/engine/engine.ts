import type { ConfigFollower } from '@sluice/config-store'
import { engineTarget } from '@sluice/config-store'
import type { Clock, Rule, SharedMemoryHandle, Store } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { Block, PolicyEngine } from '@sluice/core/policy'
import type { Logger } from '@sluice/runtime'
import type { AnnounceBlock } from '../alerts/block-export.ts'
import { ApiKeyCache } from '../auth/api-key-cache.ts'
import { FileConfigReads } from '../config/config-reads.ts'
import type { DataFolder } from '../config/data-folder.ts'
import { FileSettingsWatch } from '../config/file-settings-watch.ts'
import type { FollowedDatabase } from '../config/follow-changes.ts'
import type { LateConfigStore } from '../config/late-config-store.ts'
import type { RuleSourceParts } from '../config/rule-source.ts'
import { databaseCheck, followDatabase, followRules, rulesCheck } from '../config/rule-source.ts'
import { StateSizeCheck } from '../config/state-size-check.ts'
import { errorFields } from '../observability/error-fields.ts'
import type { Instrument } from '../observability/instrument.ts'
import { ObservedEngine } from '../observability/observed-engine.ts'
import type { CheckHealth } from '../operations/health.ts'
import type { Settings } from '../settings.ts'
import type { ThreadGroup } from '../threads/message-bus.ts'
import { openCounterStore, readNodeCount, saveNodeCount } from './counter-store.ts'

/** Limits requests that no rule matches, where the settings ask for it. */
const DEFAULT_RULE: Rule = { limit: 100, window: '1m' }

/** What limits are made of. */
export interface EngineParts {
  readonly settings: Settings
  readonly clock: Clock
  readonly log: Logger
  readonly folder: DataFolder
  /** Where API keys, blocks and the incident are kept, and rules unless they come from a file. Closed by whoever made it. */
  readonly database: LateConfigStore
  /** The memory that threads count in together; undefined when there is one thread, or Redis. */
  readonly shared: SharedMemoryHandle | undefined
  /** Is told of everything that happens. */
  readonly instrument: Instrument
  /** Milliseconds since some instant, with fractions, never going back. */
  readonly monotonicMs: () => number
  /** The threads of this process; the first of them tells for all. */
  readonly threads: Pick<ThreadGroup<unknown>, 'index'>
  readonly announceBlock: AnnounceBlock
}

/** What decides, in one thread. */
export interface DecisionEngine {
  readonly store: Store
  readonly engine: PolicyEngine
  /** Where rules are changed; undefined when they come from a file. */
  readonly config: LateConfigStore | undefined
  readonly follower: ConfigFollower
  readonly keys: ApiKeyCache
  /** What the file says that rules come from; undefined when they come from the database. */
  readonly file: FileConfigReads | undefined
  /** Where everything else is changed when the rules come from a file; undefined when they come from the database. */
  readonly besideFile: FollowedDatabase | undefined
  readonly checks: readonly CheckHealth[]
  /** Resolves when there are rules, or after some seconds without any. Rejects when they come from a file that cannot be used. */
  startFollowing(): Promise<void>
  /** Resolves when the counters are connected, or after so many milliseconds without. */
  connected(withinMs: number): Promise<void>
  stopFollowing(): Promise<void>
  closeStore(): Promise<void>
}

/** Maximum number of `acquire` requests that wait at once in a thread. One more is answered at once. */
const MAX_WAITING = 1000

/** Opens the counters that the settings name, and begins to follow the rules that they name. */
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
  const follower = followRules({ ...following, onService, target: file?.watch(target) ?? target })
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
        // A file that cannot be used is a mistake of whoever starts the service; a database comes back.
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
