import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import type { Clock, FailureMode, SharedMemoryHandle, Store } from '@sluice/core'
import { attachSharedMemoryStore, createLimiter, memoryStore, sharedMemoryStore } from '@sluice/core'
import { urlWithoutSecrets } from '@sluice/core/options'
import type { Failure, LeaseEvent, StoreObserver } from '@sluice/core/store'
import type { ServerWarning } from '@sluice/store-redis'
import { redisStore } from '@sluice/store-redis'
import type { HealthCheck } from '../operations/health.ts'
import type { RedisSettings, Settings } from '../settings.ts'

/** Where counters live. */
export interface CounterStore {
  readonly store: Store
  /** Whether decisions are made, found out by asking for one. Does not fail. */
  check(): Promise<HealthCheck>
  /** Resolves when the store is connected, or after so many milliseconds without. */
  connected(withinMs: number): Promise<void>
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
  /** Node count until Redis has told a newer one: each thread is a node. */
  readonly initialNodes: number
  readonly onNodesChange: (nodes: number) => void
}

/** So many threads may end unexpectedly over the life of the process: what they leave behind stays taken. */
const MOST_THREADS = 256

/** Opens the store that the settings name. It may be away: decisions are made by failure mode until it is there. */
export function openCounterStore(settings: Settings, parts: CounterStoreParts): CounterStore {
  const { redis, maxKeys } = settings
  const { clock, shared } = parts
  if (redis !== undefined) return redisCounters(redis, maxKeys, parts)
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
  const ok: HealthCheck = { name: 'store', ready: true, detail: 'counters live in this process' }
  const connected = (): Promise<void> => Promise.resolve()
  return { store, check: () => Promise.resolve(ok), connected, close: () => store.close() }
}

function redisCounters(
  settings: RedisSettings,
  maxLocalKeys: number,
  { observe, observeLeases, onWarning, initialNodes, onNodesChange }: CounterStoreParts,
): CounterStore {
  const { urls, isCluster, sentinel, prefix, leases, failureMode, deadlineMs } = settings
  const store = redisStore(urls.length === 1 ? urls[0]! : urls, {
    prefix,
    leases: leases && { observe: observeLeases },
    failureMode,
    deadlineMs,
    maxLocalKeys,
    initialNodes,
    onNodesChange,
    observe,
    onWarning,
    ...(isCluster && { cluster: true }),
    ...(sentinel !== undefined && { sentinel: { name: sentinel } }),
  })
  return {
    store,
    check: checkOf(store, settings),
    async connected(withinMs) {
      // A user without a permission is told of by a warning, and in the readiness.
      await store.ready(withinMs).catch(() => undefined)
    },
    close: () => store.close(),
  }
}

/**
 * Looks at a counter that nobody uses. So it is known whether decisions are made, not only whether there is a connection; and a
 * node that gets no requests because it was not ready finds out when it is again. A node that goes on without Redis is ready:
 * others would be no better off.
 */
function checkOf(store: Store<'async'>, settings: RedisSettings): () => Promise<HealthCheck> {
  const probe = createLimiter({ algorithm: 'gcra', limit: 1, window: '1s', name: 'sluice-readiness', store })
  return async () => {
    const { failure } = await probe.peek('any')
    if (failure === undefined) return { name: 'store', ready: true, detail: 'Redis answers' }
    const detail = `Redis ${CAUSES[failure.cause]}; failure mode "${settings.failureMode}"`
    const reasons = [{ code: 'redis-unreachable' as const, message: unreachable(settings, failure) }]
    return { name: 'store', ready: settings.failureMode !== 'closed', detail, reasons }
  }
}

const CAUSES: Readonly<Record<Failure['cause'], string>> = {
  unreachable: 'is unreachable',
  deadline: 'does not answer in time',
  refused: 'answers with an error',
  breaker: 'gives no usable answer',
}

const MODES: Readonly<Record<FailureMode, string>> = {
  open: 'every check is allowed',
  closed: 'every check is denied',
  local: 'each node counts on its own, with its share of the limit',
}

function unreachable({ urls, failureMode }: RedisSettings, { cause }: Failure): string {
  const place = urls.map(urlWithoutSecrets).join(', ')
  return `Redis at ${place} ${CAUSES[cause]}. Failure mode "${failureMode}" applies to rules that set none: ${MODES[failureMode]}. Check REDIS_URL (--redis-url) and the server; the log has the error.`
}

const MOST_NODES = 1_000_000

/**
 * The node count that was saved last; undefined when there is none, or the file holds something else. A process that
 * starts while Redis is unreachable has no other way to know how many nodes share a limit.
 */
export function readNodeCount(path: string): number | undefined {
  try {
    const nodes = Number(readFileSync(path, 'utf8').trim())
    return Number.isInteger(nodes) && nodes >= 1 && nodes <= MOST_NODES ? nodes : undefined
  } catch {
    return undefined
  }
}

/**
 * Saves the node count. The file is complete at any time: a new one replaces it. Synchronous, so that two saves cannot
 * overlap. Throws when it cannot be written.
 */
export function saveNodeCount(path: string, nodes: number): void {
  const next = `${path}.new`
  writeFileSync(next, `${nodes}\n`, { mode: 0o600 })
  renameSync(next, path)
}
