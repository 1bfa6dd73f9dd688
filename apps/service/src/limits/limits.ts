import type { ConfigFollower } from '@sluice/config-store'
import { engineTarget } from '@sluice/config-store'
import type { ReadinessCheck } from '@sluice/contract'
import type { Block, Clock, PolicyEngine, SharedMemoryHandle, Store } from '@sluice/core'
import type { Logger } from '@sluice/runtime'
import type { KeyDatabase } from '../admin-api/config-access.ts'
import { FileReads } from '../admin-api/file-reads.ts'
import { ApiKeyCache } from '../auth/api-key-cache.ts'
import { errorFields } from '../observability/error-fields.ts'
import type { Instrument } from '../observability/instrument.ts'
import { ObservedEngine } from '../observability/observed-engine.ts'
import type { Settings } from '../settings.ts'
import { openCounterStore } from './counter-store.ts'
import type { DataFolder } from './data-folder.ts'
import type { LateConfigStore } from './late-config-store.ts'
import { followKeys, followRules, rulesCheck } from './rule-source.ts'

/** What limits are made of. */
export interface LimitsParts {
  readonly settings: Settings
  readonly clock: Clock
  readonly log: Logger
  readonly folder: DataFolder
  /** Where API keys are kept, and rules unless they come from a file. Closed by whoever made it. */
  readonly database: LateConfigStore
  /** The memory that threads count in together; undefined when there is one thread, or Redis. */
  readonly shared: SharedMemoryHandle | undefined
  /** Is told of everything that happens. */
  readonly instrument: Instrument
  /** Milliseconds since some instant, with fractions, never going back. */
  readonly monotonicMs: () => number
}

/** What decides, in one thread. */
export interface Limits {
  readonly store: Store
  readonly engine: PolicyEngine
  /** Where rules are changed; undefined when they come from a file. */
  readonly config: LateConfigStore | undefined
  readonly follower: ConfigFollower
  readonly keys: ApiKeyCache
  /** What the file says that rules come from; undefined when they come from the database. */
  readonly file: FileReads | undefined
  /** Where API keys are changed when the rules come from a file; undefined when they come from the database. */
  readonly keyDatabase: KeyDatabase | undefined
  readonly checks: readonly (() => ReadinessCheck | Promise<ReadinessCheck>)[]
  /** Resolves when there are rules, or after some seconds without any. Rejects when they come from a file that cannot be used. */
  startFollowing(): Promise<void>
  stopFollowing(): Promise<void>
  closeStore(): Promise<void>
}

/** Opens the counters that the settings name, and begins to follow the rules that they name. */
export function openLimits(parts: LimitsParts): Limits {
  const { settings, clock, log, folder, database, instrument, monotonicMs } = parts
  const counters = openCounterStore(settings, {
    clock,
    shared: parts.shared,
    observe: instrument.observeStore,
    observeLeases: instrument.observeLeases,
    onWarning: ({ code, message }) => log.warn('Redis is not set up well', { code, advice: message }),
  })
  const { store } = counters
  const config = settings.rulesFile === undefined ? database : undefined
  const keepBlock = config && { keepBlock: (block: Block) => config.blocks.put(block, { name: 'penalty' }) }
  const engine = new ObservedEngine(
    { store, clock, observer: instrument.observePolicy, ...keepBlock },
    { observer: instrument, monotonicMs },
  )
  const keys = new ApiKeyCache()
  const file = config === undefined ? new FileReads({ file: settings.rulesFile!, engine }) : undefined
  const following = { settings, database, clock, observe: instrument.observeConfig, cachePath: folder.rulesCache }
  const follower =
    file === undefined
      ? followRules({ ...following, target: engineTarget(engine, { others: keys }) })
      : followRules({ ...following, target: file.watch(engineTarget(engine)) })
  // A file has no keys: they stay in the database.
  const keyFollower = file === undefined ? undefined : followKeys(following, keys)
  const stopFollowing = async (): Promise<void> => {
    await Promise.all([follower.close(), keyFollower?.close()])
  }
  return {
    store,
    engine,
    config,
    follower,
    keys,
    file,
    keyDatabase: keyFollower && { config: database, follower: keyFollower },
    checks: [() => counters.check(), () => rulesCheck(follower)],
    async startFollowing() {
      try {
        await Promise.all([follower.ready(), keyFollower?.ready()])
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
    closeStore: () => counters.close(),
  }
}
