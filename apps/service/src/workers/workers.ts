import { extname } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import type { Clock, SharedMemoryHandle } from '@sluice/core'
import type { Logger, Random, Sleep } from '@sluice/runtime'
import type { ListenerPorts } from '../listeners/listener.ts'
import { assertPortsFree, listenerPorts } from '../listeners/listener.ts'
import type { NodeParts, ServiceNode } from '../node.ts'
import { createNode } from '../node.ts'
import type { HealthCheck } from '../operations/health.ts'
import type { ServiceMessages } from '../service-context.ts'
import type { Settings } from '../settings/settings.ts'
import type { MainThread } from '../thread-messages/message-bus.ts'
import { SingleThread, ThreadHub } from '../thread-messages/message-bus.ts'
import { ThreadSupervisor } from './supervisor.ts'

/** The threads that serve requests: this one, or several under a supervisor. It runs once. */
export interface Workers {
  readonly group: MainThread<ServiceMessages>
  /** Ports of the listeners; empty unless started. */
  readonly ports: ListenerPorts
  /** Resolves when requests are served. */
  start(): Promise<void>
  /** Reports not ready and closes connections after their responses; resolves after `drainMs`. */
  drain(drainMs: number): Promise<void>
  stop(): Promise<void>
}

/** Serves requests in this thread. */
export function singleWorker(parts: Omit<NodeParts, 'threads' | 'checks' | 'failures'>): Workers {
  const group = new SingleThread<ServiceMessages>()
  let service: ServiceNode | undefined
  return {
    group,
    get ports() {
      return service?.ports ?? {}
    },
    async start() {
      service = createNode({ ...parts, threads: group, checks: [], failures: undefined })
      await service.start()
    },
    async drain(drainMs) {
      await service?.drain(drainMs)
    },
    async stop() {
      await service?.stop()
    },
  }
}

/** What several threads are started with. */
export interface WorkerThreadsParts {
  readonly settings: Settings
  readonly clock: Clock
  readonly sleep: Sleep
  readonly random: Random
  readonly log: Logger
  readonly shared: SharedMemoryHandle | undefined
  readonly failures: SharedMemoryHandle
  readonly secret: SharedArrayBuffer
  readonly machineNumbers: SharedArrayBuffer
}

// Sources and compiled files both run. Sources resolve packages by a condition. Node 22 warns about node:sqlite.
const EXTENSION = extname(import.meta.filename)
const WORKER_FILE = new URL(`./worker-main${EXTENSION}`, import.meta.url)
const WORKER_FLAGS = ['--disable-warning=ExperimentalWarning', ...(EXTENSION === '.ts' ? ['--conditions=source'] : [])]
// Threads that strip types from sources can make V8 abort; vitest.config.ts says how. Compiled files are not affected.
if (EXTENSION === '.ts') setFlagsFromString('--wasm-wrapper-tiering-budget=1000000000')

/** Serves requests in several threads on the same ports, supervised by this thread. */
export function workerThreads(parts: WorkerThreadsParts): Workers {
  const { settings, clock, shared, failures, secret, machineNumbers } = parts
  const { threads } = settings
  const hub = new ThreadHub<ServiceMessages>(threads)
  hub.handleInMain('threads.health', () => threadsCheck(hub))
  const supervisor = new ThreadSupervisor({
    ...parts,
    hub,
    ports: listenerPorts(settings),
    nowMs: () => clock.nowMicros() / 1000,
    spawn: (index) => {
      const workerData: WorkerData = { settings, index, shared, failures, secret, machineNumbers }
      return new Worker(WORKER_FILE, { workerData, execArgv: WORKER_FLAGS })
    },
  })
  return {
    group: hub,
    get ports() {
      return supervisor.ports
    },
    async start() {
      // Sockets that share a port would share it with another process as well, which would get half of the requests.
      await assertPortsFree(settings)
      await supervisor.start()
    },
    drain: (drainMs) => supervisor.drain(drainMs),
    stop: () => supervisor.stop(),
  }
}

/** With fewer threads than configured the service is degraded, but ready. */
function threadsCheck({ alive, count }: ThreadHub<unknown>): HealthCheck {
  const detail = `${alive} of ${count} running`
  if (alive >= count) return { name: 'threads', ready: true, detail }
  const message =
    `Only ${alive} of ${count} threads serve requests. The others are being ` +
    'restarted; the log says why they ended.'
  return { name: 'threads', ready: true, detail, reasons: [{ code: 'threads-missing', message }] }
}

/** What a new thread gets. */
export interface WorkerData {
  readonly settings: Settings
  /** Number of the thread, starting at 0. */
  readonly index: number
  readonly shared: SharedMemoryHandle | undefined
  /** Counters of failed authentication attempts. */
  readonly failures: SharedMemoryHandle
  /** Of the `SigningSecret`. */
  readonly secret: SharedArrayBuffer
  /** Of the `MachineNumberTable`. */
  readonly machineNumbers: SharedArrayBuffer
}
