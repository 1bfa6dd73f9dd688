import { extname } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import type { Clock, SharedMemoryHandle } from '@sluice/core'
import type { Logger, Random, Sleep } from '@sluice/runtime'
import { backoffDelayMs } from '@sluice/runtime'
import type { ListenerPorts } from '../listeners/listener.ts'
import { assertPortsFree, listenerPorts } from '../listeners/listener.ts'
import { errorFields } from '../observability/error-fields.ts'
import type { HealthCheck } from '../operations/health.ts'
import type { ServiceMessages } from '../service-context.ts'
import { ServiceError } from '../service-error.ts'
import type { ServiceThread, ServiceThreadParts } from '../service-thread.ts'
import { createServiceThread } from '../service-thread.ts'
import type { Settings } from '../settings/settings.ts'
import type { MainThread, ThreadPort, ToMain } from '../thread-messages/message-bus.ts'
import { SingleThread, ThreadHub, ThreadLink } from '../thread-messages/message-bus.ts'

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
export function singleWorker(parts: Omit<ServiceThreadParts, 'threads' | 'checks' | 'failures'>): Workers {
  const group = new SingleThread<ServiceMessages>()
  let service: ServiceThread | undefined
  return {
    group,
    get ports() {
      return service?.ports ?? {}
    },
    async start() {
      service = createServiceThread({ ...parts, threads: group, checks: [], failures: undefined })
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

/** What a supervisor needs of a `Worker`. */
export interface SupervisedThread extends ThreadPort {
  on(event: 'message', listener: (message: unknown) => void): unknown
  on(event: 'error', listener: (error: unknown) => void): unknown
  on(event: 'exit', listener: (code: number) => void): unknown
  terminate(): Promise<number>
}

/** Options of {@link ThreadSupervisor}. */
export interface SupervisorOptions {
  readonly hub: ThreadHub<unknown>
  /** Creates the thread with this number. It does nothing before `thread.start`. */
  readonly spawn: (index: number) => SupervisedThread
  /** Ports of the first thread; 0 for any free port. The others listen on the same ports. */
  readonly ports: ListenerPorts
  readonly sleep: Sleep
  readonly random: Random
  readonly nowMs: () => number
  readonly log: Logger
}

/** What a supervisor sends to a thread. */
export interface ToWorker {
  /** Starts to serve requests on these ports. The reply is the ports that it listens on. */
  'thread.start': (ports: ListenerPorts) => ListenerPorts
  'thread.drain': (drainMs: number) => void
  'thread.stop': () => void
}

/** What a thread sends to its supervisor. */
export interface ToSupervisor extends ToMain {
  /**
   * The thread is about to read the configuration. From then on it gets the messages of all threads, so it misses no
   * change that is committed while it starts.
   */
  'thread.enter': () => void
}

/** Timeout of a start, and the time to stop beyond the drain. */
const START_TIMEOUT_MS = 60_000
const STOP_TIMEOUT_MS = 30_000

const BACKOFF = { baseMs: 100, capMs: 10_000 }

/** The backoff starts over for a thread that ran this long. */
const HEALTHY_AFTER_MS = 60_000

interface Running {
  readonly thread: SupervisedThread
  readonly link: ThreadLink<ToWorker, ToSupervisor>
  readonly ended: Promise<void>
}

/** Starts threads, restarts those that end by themselves, and stops all. It runs once. */
export class ThreadSupervisor {
  readonly #options: SupervisorOptions
  readonly #running = new Map<number, Running>()
  readonly #stopping = new AbortController()
  readonly #restarts = new Set<Promise<void>>()
  #ports: ListenerPorts | undefined

  constructor(options: SupervisorOptions) {
    this.#options = options
  }

  /** Ports of all threads; empty unless they are started. */
  get ports(): ListenerPorts {
    return this.#ports ?? {}
  }

  /** Resolves when all threads serve requests. If one cannot start, stops all and rejects. */
  async start(): Promise<void> {
    const { hub } = this.#options
    try {
      // The first thread picks the ports.
      await this.#launch(0, 0)
      await Promise.all(Array.from({ length: hub.count - 1 }, (_, index) => this.#launch(index + 1, 0)))
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  /** Keeps serving while load balancers move traffic away; resolves after `drainMs`. */
  async drain(drainMs: number): Promise<void> {
    this.#stopping.abort()
    await this.#callAll((link) => link.call(drainMs + STOP_TIMEOUT_MS, 'thread.drain', drainMs))
  }

  /** Stops all threads; resolves when all have ended. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all(this.#restarts)
    await this.#callAll((link) => link.call(STOP_TIMEOUT_MS, 'thread.stop'))
    await Promise.all(
      Array.from(this.#running.values(), ({ thread, ended }) => Promise.all([thread.terminate(), ended])),
    )
  }

  async #callAll(call: (link: Running['link']) => Promise<void>): Promise<void> {
    const { log } = this.#options
    await Promise.all(
      Array.from(this.#running, async ([index, { link }]) => {
        try {
          await call(link)
        } catch (error) {
          log.warn('a thread did not stop cleanly', { thread: index, error: errorFields(error) })
        }
      }),
    )
  }

  /** `failures`: number of times in a row that it ended before. */
  async #launch(index: number, failures: number): Promise<void> {
    const { hub, spawn, sleep, nowMs } = this.#options
    const thread = spawn(index)
    const link = new ThreadLink<ToWorker, ToSupervisor>(thread, sleep)
    link.handle('thread.enter', () => hub.enter(index, link))
    hub.attach(link)
    const ended = Promise.withResolvers<void>()
    let failure: unknown
    let startedAtMs: number | undefined
    thread.on('error', (error) => {
      failure = error
    })
    thread.on('exit', (code) => {
      link.close()
      hub.part(index, link)
      this.#running.delete(index)
      ended.resolve()
      if (startedAtMs === undefined || this.#stopping.signal.aborted) return
      const next = nowMs() - startedAtMs >= HEALTHY_AFTER_MS ? 0 : failures
      this.#relaunch(index, next, failure ?? new Error(`it ended with exit code ${code}`))
    })
    this.#running.set(index, { thread, link, ended: ended.promise })
    try {
      this.#ports = await link.call(START_TIMEOUT_MS, 'thread.start', this.#ports ?? this.#options.ports)
    } catch (error) {
      await thread.terminate()
      throw threadFailed(index, failure ?? error)
    }
    startedAtMs = nowMs()
    hub.join(index, link)
  }

  #relaunch(index: number, failures: number, error: unknown): void {
    const { log, random, sleep } = this.#options
    const delayMs = backoffDelayMs(failures, random, BACKOFF)
    log.error('a thread ended and is restarted', {
      thread: index,
      error: errorFields(error),
      delayMs: Math.round(delayMs),
    })
    const restart = sleep(delayMs, this.#stopping.signal).then(
      () =>
        this.#launch(index, failures + 1).catch((cause: unknown) => {
          if (!this.#stopping.signal.aborted) this.#relaunch(index, failures + 1, cause)
        }),
      () => undefined,
    )
    this.#restarts.add(restart)
    void restart.finally(() => this.#restarts.delete(restart))
  }
}

/** An error about a setting stays as it is. */
function threadFailed(index: number, cause: unknown): unknown {
  const code = (cause as { readonly code?: unknown } | undefined)?.code
  if (typeof code === 'string' && code.startsWith('SLUICE_SERVICE_')) return cause
  return new ServiceError('SLUICE_SERVICE_THREAD_FAILED', {
    received: `thread ${index} (${cause instanceof Error ? cause.message : String(cause)})`,
    expected: 'a thread that serves requests',
    action: 'See the cause. --threads 1 runs without further threads.',
    cause,
  })
}
