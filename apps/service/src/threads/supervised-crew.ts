import { createServer } from 'node:http'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { ReadinessCheck } from '@sluice/contract'
import type { Clock, SharedMemoryHandle } from '@sluice/core'
import type { Logger, Random, Sleep } from '@sluice/runtime'
import { listenError } from '../http/listen-error.ts'
import type { Settings } from '../settings.ts'
import type { Crew } from './crew.ts'
import { ThreadHub } from './linked-threads.ts'
import { THREADS_TOPIC } from './thread-group.ts'
import { ThreadSupervisor } from './thread-supervisor.ts'
import type { WorkerData } from './worker-data.ts'

/** What several threads are started with. */
export interface SupervisedCrewParts {
  readonly settings: Settings
  readonly clock: Clock
  readonly sleep: Sleep
  readonly random: Random
  readonly log: Logger
  readonly shared: SharedMemoryHandle | undefined
  readonly failures: SharedMemoryHandle
  readonly secret: SharedArrayBuffer
  readonly cells: SharedArrayBuffer
}

// The sources run as they are, and as the compiler left them. They find each other by a condition.
const EXTENSION = extname(import.meta.filename)
const WORKER_FILE = new URL(`./worker-main${EXTENSION}`, import.meta.url)
const WORKER_FLAGS = EXTENSION === '.ts' ? ['--conditions=source'] : []

/** Threads that answer requests on one port, under the supervision of this one. */
export function superviseCrew(parts: SupervisedCrewParts): Crew {
  const { settings, clock, shared, failures, secret, cells } = parts
  const { host, port, threads } = settings
  const hub = new ThreadHub(threads)
  hub.answerForAll(THREADS_TOPIC, () => threadsCheck(hub))
  const supervisor = new ThreadSupervisor({
    ...parts,
    hub,
    port,
    nowMs: () => clock.nowMicros() / 1000,
    spawn: (index) => {
      const workerData: WorkerData = { settings, index, shared, failures, secret, cells }
      return new Worker(WORKER_FILE, { workerData, execArgv: WORKER_FLAGS })
    },
  })
  return {
    group: hub,
    get port() {
      return supervisor.port
    },
    async start() {
      await refuseTakenPort(host, port)
      await supervisor.start()
    },
    drain: (drainMs) => supervisor.drain(drainMs),
    stop: () => supervisor.stop(),
  }
}

/** A process with fewer threads than it should have answers all the same. */
function threadsCheck(hub: ThreadHub): ReadinessCheck {
  return { name: 'threads', ready: true, detail: `${hub.alive} of ${hub.count} answer` }
}

/**
 * Sockets that share a port would share it with those of another process as well, and each would get half of the requests. One
 * that shares with nobody finds out whether the port is free.
 */
function refuseTakenPort(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', (error) => reject(listenError(error, { host, port })))
    probe.listen({ host, port }, () => probe.close(() => resolve()))
  })
}
