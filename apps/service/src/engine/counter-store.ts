import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import type { Clock, FailureMode, SharedMemoryHandle, Store } from '@sluice/core'
import { attachSharedMemoryStore, createLimiter, memoryStore, sharedMemoryStore } from '@sluice/core'
import { urlWithoutSecrets } from '@sluice/core/options'
import type { Failure, LeaseEvent, StoreObserver } from '@sluice/core/store'
import type { ServerWarning } from '@sluice/store-redis'
import { redisStore } from '@sluice/store-redis'
import type { HealthCheck } from '../operations/health.ts'
import type { RedisSettings, Settings } from '../settings/settings.ts'

/** The store of the counters. */
export interface CounterStore {
  readonly store: Store
  /** Readiness check: makes a test decision. Does not fail. */
  check(): Promise<HealthCheck>
  /** Resolves when the store is connected, or after the given milliseconds. */
  connected(withinMs: number): Promise<void>
  /** Returns leases and closes connections. */
  close(): Promise<void>
}

export interface CounterStoreParts {
  readonly clock: Clock
  /** Memory shared by threads; undefined with one thread or with Redis. */
  readonly shared: SharedMemoryHandle | undefined
  readonly observe: StoreObserver
  readonly observeLeases: (event: LeaseEvent) => void
  readonly onWarning: (warning: ServerWarning) => void
  /** Node count until Redis reports one. Each thread is a node. */
  readonly initialNodes: number
  readonly onNodesChange: (nodes: number) => void
}

/** Spare thread numbers: a thread that dies keeps its number taken until the process ends. */
const MOST_THREADS = 256

/** Opens the store of the settings. While it is unreachable, failure modes decide. */
export function openCounterStore(settings: Settings, parts: CounterStoreParts): CounterStore {
  const { redis, maxKeys } = settings
  const { clock, shared } = parts
  if (redis !== undefined) return redisCounters(settings, redis, parts)
  return localCounters(
    shared === undefined ? memoryStore({ maxKeys, clock }) : attachSharedMemoryStore(shared, { clock }),
  )
}

/** Creates memory for the counters that threads share; undefined if the settings need none. */
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
  { maxKeys: maxLocalKeys, grpc }: Settings,
  settings: RedisSettings,
  { observe, observeLeases, onWarning, initialNodes, onNodesChange }: CounterStoreParts,
): CounterStore {
  const { urls, isCluster, sentinel, prefix, leases, failureMode, deadlineMs } = settings
  const store = redisStore(urls.length === 1 ? urls[0]! : urls, {
    prefix,
    leases: leases && { observe: observeLeases },
    failureMode,
    deadlineMs,
    urgentDeadlineMs: Math.min(deadlineMs, grpc?.deadlineMs ?? deadlineMs),
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
      // A missing permission is logged and reported in readiness.
      await store.ready(withinMs).catch(() => undefined)
    },
    close: () => store.close(),
  }
}

/**
 * Peeks at an unused counter. That shows whether decisions work, not only whether there is a connection, and a node
 * that gets no requests because it was not ready notices when it is ready again. A node without Redis is ready: another
 * one would be no better.
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
  return (
    `Redis at ${place} ${CAUSES[cause]}. Failure mode "${failureMode}" applies to rules that set none: ` +
    `${MODES[failureMode]}. Check REDIS_URL (--redis-url) and the server; the log has the error.`
  )
}

const MOST_NODES = 1_000_000

/**
 * The saved node count; undefined if there is none or the file is invalid. A process that starts while Redis is
 * unreachable cannot know it otherwise.
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
