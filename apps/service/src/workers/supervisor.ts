import type { Logger, Random, Sleep } from '@sluice/runtime'
import { backoffDelayMs } from '@sluice/runtime'
import { errorFields } from '../observability/error-fields.ts'
import { ServiceError } from '../service-error.ts'
import type { ThreadHub } from '../threads/message-bus.ts'
import type { ThreadPort } from '../threads/thread-link.ts'
import { ThreadLink } from '../threads/thread-link.ts'

/** A thread as a supervisor needs it: a `Worker`. */
export interface SupervisedThread extends ThreadPort {
  on(event: 'message', listener: (message: unknown) => void): unknown
  on(event: 'error', listener: (error: unknown) => void): unknown
  on(event: 'exit', listener: (code: number) => void): unknown
  terminate(): Promise<number>
}

/** Options of {@link ThreadSupervisor}. */
export interface SupervisorOptions {
  readonly hub: ThreadHub
  /** Starts the thread with this number. It does nothing before it is told to. */
  readonly spawn: (index: number) => SupervisedThread
  /** Where the first thread listens: 0 for any free port. The others listen where it does. */
  readonly port: number
  readonly sleep: Sleep
  readonly random: Random
  readonly nowMs: () => number
  readonly log: Logger
}

/** What threads are told by their supervisor. */
export const THREAD_START = 'thread.start'
export const THREAD_DRAIN = 'thread.drain'
export const THREAD_STOP = 'thread.stop'

/**
 * What a thread tells its supervisor before it reads any configuration. It is asked what all threads are asked from then on: what
 * is changed while it starts reaches it, whether it is read at the start or followed.
 */
export const THREAD_ENTER = 'thread.enter'

/** How long a thread may take to start, and how much longer than it should to stop. */
const START_MS = 60_000
const STOP_MS = 30_000

const BACKOFF = { baseMs: 100, capMs: 10_000 }

/** A thread that ran so long before it ended is started again as if it had not ended before. */
const WELL_AFTER_MS = 60_000

interface Running {
  readonly thread: SupervisedThread
  readonly link: ThreadLink
  readonly ended: Promise<void>
}

/** Starts threads, starts those anew that end by themselves, and stops all in order. It runs once. */
export class ThreadSupervisor {
  readonly #options: SupervisorOptions
  readonly #running = new Map<number, Running>()
  readonly #stopping = new AbortController()
  readonly #restarts = new Set<Promise<void>>()
  #port: number | undefined

  constructor(options: SupervisorOptions) {
    this.#options = options
  }

  /** Where all threads listen; undefined unless they are started. */
  get port(): number | undefined {
    return this.#port
  }

  /** Resolves when all threads answer requests. Rejects when one cannot, and then none is left. */
  async start(): Promise<void> {
    const { hub } = this.#options
    try {
      // The others listen where the first does.
      await this.#launch(0, 0)
      await Promise.all(Array.from({ length: hub.count - 1 }, (_, index) => this.#launch(index + 1, 0)))
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  /** Lets clients of all threads go elsewhere; resolves after `drainMs`. */
  async drain(drainMs: number): Promise<void> {
    this.#stopping.abort()
    await this.#tellAll(THREAD_DRAIN, drainMs, drainMs + STOP_MS)
  }

  /** Stops all threads in order; resolves when none is left. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all(this.#restarts)
    await this.#tellAll(THREAD_STOP, undefined, STOP_MS)
    await Promise.all(
      Array.from(this.#running.values(), ({ thread, ended }) => Promise.all([thread.terminate(), ended])),
    )
  }

  async #tellAll(topic: string, question: unknown, withinMs: number): Promise<void> {
    const { log } = this.#options
    await Promise.all(
      Array.from(this.#running, async ([index, { link }]) => {
        try {
          await link.ask(topic, question, withinMs)
        } catch (error) {
          log.warn('a thread did not stop in order', { thread: index, error: errorFields(error) })
        }
      }),
    )
  }

  /** `failures`: how often in a row it ended before. */
  async #launch(index: number, failures: number): Promise<void> {
    const { hub, spawn, sleep, nowMs } = this.#options
    const thread = spawn(index)
    const link: ThreadLink = new ThreadLink({
      port: thread,
      answer: (topic, question) => (topic === THREAD_ENTER ? hub.enter(index, link) : hub.serve(topic, question)),
      sleep,
    })
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
      const next = nowMs() - startedAtMs >= WELL_AFTER_MS ? 0 : failures
      this.#relaunch(index, next, failure ?? new Error(`it ended with ${code}`))
    })
    this.#running.set(index, { thread, link, ended: ended.promise })
    try {
      const port = await link.ask<number>(THREAD_START, this.#port ?? this.#options.port, START_MS)
      this.#port = port
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
    log.error('a thread ended and is started again', {
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

/** An error that is told in the words of the settings stays as it is. */
function threadFailed(index: number, cause: unknown): unknown {
  const code = (cause as { readonly code?: unknown } | undefined)?.code
  if (typeof code === 'string' && code.startsWith('SLUICE_SERVICE_')) return cause
  return new ServiceError('SLUICE_SERVICE_THREAD_FAILED', {
    received: `thread ${index} (${cause instanceof Error ? cause.message : String(cause)})`,
    expected: 'it to begin to answer requests',
    action: 'See the cause; --threads 1 does without further threads.',
    cause,
  })
}
