import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Clock, SharedMemoryHandle } from '@sluice/core'
import type { Logger, Random, Sleep } from '@sluice/runtime'
import { assertPortFree } from '../listeners/http/listen-error.ts'
import type { HealthCheck } from '../operations/readiness.ts'
import type { Settings } from '../settings.ts'
import { ThreadHub } from '../threads/message-bus.ts'
import { THREADS_TOPIC } from '../threads/thread-group.ts'
import { ThreadSupervisor } from './supervisor.ts'
import type { WorkerData } from './worker-data.ts'
import type { Crew } from './workers.ts'

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
  const { port, threads } = settings
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
