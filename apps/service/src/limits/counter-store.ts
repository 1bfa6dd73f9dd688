import type { ReadinessCheck } from '@sluice/contract'
import type { Clock, FailureMode, LeaseEvent, SharedMemoryHandle, Store, StoreObserver } from '@sluice/core'
import { attachSharedMemoryStore, createLimiter, memoryStore, sharedMemoryStore } from '@sluice/core'
import type { ServerWarning } from '@sluice/store-redis'
import { redisStore } from '@sluice/store-redis'
import type { RedisSettings, Settings } from '../settings.ts'

/** Where counters live. */
export interface CounterStore {
  readonly store: Store
  /** Whether decisions are made, found out by asking for one. Does not fail. */
  check(): Promise<ReadinessCheck>
  /** Gives back what is held, and closes connections. */
  close(): Promise<void>
}

/** What a store is opened with, besides the settings. */
export interface CounterStoreParts {
  readonly clock: Clock
  /** The memory that threads count in together; undefined when there is one thread, or Redis. */
  readonly shared: SharedMemoryHandle | undefined
  readonly observe: StoreObserver
  readonly observeLeases: (event: LeaseEvent) => void
  readonly onWarning: (warning: ServerWarning) => void
}

/** So many threads may end unexpectedly over the life of the process: what they leave behind stays taken. */
const MOST_THREADS = 256

/** Opens the store that the settings name. It may be away: decisions are made by failure mode until it is there. */
export function openCounterStore(settings: Settings, parts: CounterStoreParts): CounterStore {
  const { redis, maxKeys } = settings
  const { clock, shared } = parts
  if (redis !== undefined) return redisCounters(redis, parts)
  return localCounters(
    shared === undefined ? memoryStore({ maxKeys, clock }) : attachSharedMemoryStore(shared, { clock }),
  )
}

/** The memory that the threads of a process with these settings count in together; undefined when they need none. */
export function sharedCounters(settings: Settings, clock: Clock): SharedMemoryHandle | undefined {
  if (settings.redis !== undefined || settings.threads === 1) return undefined
  const { maxKeys, stateSize } = settings
  return sharedMemoryStore({ maxKeys, maxStateSize: stateSize, maxThreads: MOST_THREADS, clock }).handle()
}

function localCounters(store: Store<'sync'>): CounterStore {
  const ok: ReadinessCheck = { name: 'store', ready: true, detail: 'counters live in this process' }
  return { store, check: () => Promise.resolve(ok), close: () => store.close() }
}

function redisCounters(
  settings: RedisSettings,
  { observe, observeLeases, onWarning }: CounterStoreParts,
): CounterStore {
  const { urls, isCluster, sentinel, prefix, leases, failureMode } = settings
  const store = redisStore(urls.length === 1 ? urls[0]! : urls, {
    prefix,
    leases: leases && { observe: observeLeases },
    failureMode,
    observe,
    onWarning,
    ...(isCluster && { cluster: true }),
    ...(sentinel !== undefined && { sentinel: { name: sentinel } }),
  })
  return { store, check: checkOf(store, failureMode), close: () => store.close() }
}

/**
 * Looks at a counter that nobody uses. So it is known whether decisions are made, not only whether there is a connection; and a
 * node that gets no requests because it was not ready finds out when it is again. A node that goes on without Redis is ready:
 * others would be no better off.
 */
function checkOf(store: Store<'async'>, failureMode: FailureMode): () => Promise<ReadinessCheck> {
  const probe = createLimiter({ algorithm: 'gcra', limit: 1, window: '1s', name: 'sluice-readiness', store })
  return async () => {
    const { failure } = await probe.peek('any')
    if (failure === undefined) return { name: 'store', ready: true, detail: 'Redis answers' }
    const detail = `Redis does not answer: rules go by their failure mode, "${failureMode}" where they have none`
    return { name: 'store', ready: failureMode !== 'closed', detail }
  }
}
