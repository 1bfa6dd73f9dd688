import { once } from 'node:events'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Burst, BurstOutcome } from '../tests/test-bed.ts'
import type { Caller, CallersOptions, Reply } from './callers.ts'
import { Callers } from './callers.ts'
import type { Order, RaceWorkerData, SharedSubject } from './race-worker.ts'
import { StartGate } from './start-gate.ts'

/** How a pool works. */
export interface WorkerPoolOptions extends Omit<CallersOptions, 'noun'> {
  /** Number of threads, 1 or more. */
  readonly threads: number
}

// The sources run as they are, and as the compiler left them.
const WORKER_FILE = new URL(`./race-worker${extname(import.meta.filename)}`, import.meta.url)

/**
 * Threads that are started once and make one burst after the other. A thread that fails or does not answer in time
 * makes the call reject; the pool can then only be closed.
 */
export class WorkerPool {
  readonly threads: number
  readonly #workers: readonly Worker[]
  readonly #callers: Callers<Order>
  readonly #gate = StartGate.create()

  constructor({ threads, ...options }: WorkerPoolOptions) {
    this.threads = threads
    const workerData: RaceWorkerData = { gateMemory: this.#gate.memory }
    this.#workers = Array.from({ length: threads }, () => new Worker(WORKER_FILE, { workerData }))
    // Without a listener the failure of a thread would end the process; here the next reply of that thread fails.
    for (const worker of this.#workers) worker.on('error', () => undefined)
    this.#callers = new Callers(this.#workers.map(callerOf), { ...options, noun: 'threads' })
  }

  /** Gives every thread a store and a rule to work on. */
  attach(subject: SharedSubject): Promise<void> {
    return this.#callers.order('attached', () => ({ kind: 'attach', subject }))
  }

  /** Lets all threads make their share of the burst, released together when the last one is ready. */
  burst(burst: Burst): Promise<BurstOutcome> {
    const round = this.#gate.round + 1
    return this.#callers.burst(burst, {
      prepare: (share) => ({ kind: 'burst', burst: share, round }),
      release: () => this.#gate.openNext(),
    })
  }

  /** Takes the store away from every thread. */
  detach(): Promise<void> {
    return this.#callers.order('detached', () => ({ kind: 'detach' }))
  }

  /** Ends all threads, wherever they are. May be called again. */
  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()))
  }
}

function callerOf(worker: Worker): Caller<Order> {
  return {
    send: (order) => worker.postMessage(order),
    nextReply: async (stuck) => {
      const [reply]: Reply[] = await once(worker, 'message', { signal: stuck })
      return reply!
    },
  }
}
