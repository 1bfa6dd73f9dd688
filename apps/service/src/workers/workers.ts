import { extname } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import type { Clock, SharedMemoryHandle } from '@sluice/core'
import type { Logger, Random, Sleep } from '@sluice/runtime'
import { assertPortFree } from '../listeners/http/http-server.ts'
import type { NodeParts, ServiceNode } from '../node.ts'
import { createNode } from '../node.ts'
import type { HealthCheck } from '../operations/health.ts'
import type { Settings } from '../settings.ts'
import type { MainThread } from '../threads/message-bus.ts'
import { SingleThread, THREADS_TOPIC, ThreadHub } from '../threads/message-bus.ts'
import { ThreadSupervisor } from './supervisor.ts'

/** All that answers requests in this process: one thread, or several under a supervisor. It runs once. */
export interface Workers {
  /** The group of its threads, as the main thread has it. */
  readonly group: MainThread
  /** Where it listens; undefined unless it is started. */
  readonly port: number | undefined
  /** Resolves when requests are answered. */
  start(): Promise<void>
  /** Not ready from now on, and connections end with their answers; resolves after `drainMs`, whether there are any or not. */
  drain(drainMs: number): Promise<void>
  stop(): Promise<void>
}

/** This thread alone answers requests. */
export function singleWorker(parts: Omit<NodeParts, 'threads' | 'checks' | 'failures'>): Workers {
  const group = new SingleThread()
  let service: ServiceNode | undefined
  return {
    group,
    get port() {
      return service?.port
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

// The sources run as they are, and as the compiler left them. They find each other by a condition.
const EXTENSION = extname(import.meta.filename)
const WORKER_FILE = new URL(`./worker-main${EXTENSION}`, import.meta.url)
const WORKER_FLAGS = EXTENSION === '.ts' ? ['--conditions=source'] : []
// Threads that strip types from sources can make V8 abort; vitest.config.ts says how. Compiled files are not affected.
if (EXTENSION === '.ts') setFlagsFromString('--wasm-wrapper-tiering-budget=1000000000')

/** Threads that answer requests on one port, under the supervision of this one. */
export function workerThreads(parts: WorkerThreadsParts): Workers {
  const { settings, clock, shared, failures, secret, machineNumbers } = parts
  const { port, threads } = settings
  const hub = new ThreadHub(threads)
  hub.answerForAll(THREADS_TOPIC, () => threadsCheck(hub))
  const supervisor = new ThreadSupervisor({
    ...parts,
    hub,
    port,
    nowMs: () => clock.nowMicros() / 1000,
    spawn: (index) => {
      const workerData: WorkerData = { settings, index, shared, failures, secret, machineNumbers }
      return new Worker(WORKER_FILE, { workerData, execArgv: WORKER_FLAGS })
    },
  })
  return {
    group: hub,
    get port() {
      return supervisor.port
    },
    async start() {
      // Sockets that share a port would share it with those of another process as well, each with half of the requests.
      await assertPortFree(settings)
      await supervisor.start()
    },
    drain: (drainMs) => supervisor.drain(drainMs),
    stop: () => supervisor.stop(),
  }
}

/** A process with fewer threads than it should have answers all the same. */
function threadsCheck({ alive, count }: ThreadHub): HealthCheck {
  const detail = `${alive} of ${count} answer`
  if (alive >= count) return { name: 'threads', ready: true, detail }
  const message = `Only ${alive} of ${count} threads answer requests. The others are being started again; the log says why they ended.`
  return { name: 'threads', ready: true, detail, reasons: [{ code: 'threads-missing', message }] }
}

/** What a thread is given when it is made. */
export interface WorkerData {
  readonly settings: Settings
  /** Its number, 0 to one less than there are threads. */
  readonly index: number
  readonly shared: SharedMemoryHandle | undefined
  /** Where failed attempts to authenticate are counted. */
  readonly failures: SharedMemoryHandle
  /** Of the `SigningSecret`. */
  readonly secret: SharedArrayBuffer
  /** Of the `MachineNumberTable`. */
  readonly machineNumbers: SharedArrayBuffer
}
