import { once } from 'node:events'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Clock, Timers } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import { HarnessError } from './harness-error.ts'
import type { Order, RaceWorkerData, Reply, SharedSubject } from './race-worker.ts'
import { StartGate } from './start-gate.ts'
import type { Burst, BurstOutcome } from './test-bed.ts'
import { evenShares } from './test-bed.ts'

/** How a pool works. */
export interface WorkerPoolOptions {
  /** Number of threads, 1 or more. */
  readonly threads: number
  /** Real time, for how long a burst took. */
  readonly stopwatch: Clock
  /** For {@link WorkerPoolOptions.deadlineMs}. */
  readonly timers: Timers
  /** How long the threads may take for one order before they count as stuck. */
  readonly deadlineMs: number
}

// The sources run as they are, and as the compiler left them.
const WORKER_FILE = new URL(`./race-worker${extname(import.meta.filename)}`, import.meta.url)

/**
 * Threads that are started once and make one burst after the other. A thread that fails or does not answer in time makes
 * the call reject; the pool can then only be closed.
 */
export class WorkerPool {
  readonly threads: number
  readonly #workers: readonly Worker[]
  readonly #gate = StartGate.create()
  readonly #options: WorkerPoolOptions

  constructor(options: WorkerPoolOptions) {
    const { threads } = options
    this.threads = threads
    this.#options = options
    const workerData: RaceWorkerData = { gateMemory: this.#gate.memory }
    this.#workers = Array.from({ length: threads }, () => new Worker(WORKER_FILE, { workerData }))
    // Without a listener the failure of a thread would end the process; here the next reply of that thread fails.
    for (const worker of this.#workers) worker.on('error', () => undefined)
  }

  /** Gives every thread a store and a rule to work on. */
  async attach(subject: SharedSubject): Promise<void> {
    await this.#order('attached', () => ({ kind: 'attach', subject }))
  }

  /** Lets all threads make their share of the burst, released together when the last one is ready. */
  async burst(burst: Burst): Promise<BurstOutcome> {
    const shares = evenShares(burst.requestsPerNode, this.threads)
    const round = this.#gate.round + 1
    await this.#order('ready', (thread) => ({
      kind: 'burst',
      burst: { ...burst, requestsPerNode: shares[thread]! },
      round,
    }))
    const { stopwatch } = this.#options
    const done = this.#replies('done')
    const startMicros = stopwatch.nowMicros()
    this.#gate.openNext()
    const replies = await done
    const ms = (stopwatch.nowMicros() - startMicros) / MICROS_PER_MS
    return { approvedPerNode: burst.nodes.map((_, node) => sum(replies.map((it) => it.approvedPerNode[node]!))), ms }
  }

  /** Takes the store away from every thread. */
  async detach(): Promise<void> {
    await this.#order('detached', () => ({ kind: 'detach' }))
  }

  /** Ends all threads, wherever they are. May be called again. */
  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()))
  }

  async #order(kind: Reply['kind'], orderFor: (thread: number) => Order): Promise<void> {
    const replies = this.#replies(kind)
    for (const [thread, worker] of this.#workers.entries()) worker.postMessage(orderFor(thread))
    await replies
  }

  /** The next reply of every thread. */
  async #replies(kind: Reply['kind']): Promise<Reply[]> {
    const { timers, deadlineMs } = this.#options
    const stuck = new AbortController()
    const cancel = timers.schedule(deadlineMs, () => stuck.abort(this.#stuckError(kind)))
    try {
      return await Promise.all(this.#workers.map((worker) => nextReply(worker, kind, stuck.signal)))
    } finally {
      cancel()
    }
  }

  #stuckError(kind: Reply['kind']): HarnessError {
    const { threads, deadlineMs } = this.#options
    return new HarnessError('SLUICE_HARNESS_THREADS_STUCK', {
      received: `no answer "${kind}" of at least one of ${threads} threads`,
      expected: `all answers within ${deadlineMs} ms`,
    })
  }
}

async function nextReply(worker: Worker, kind: Reply['kind'], stuck: AbortSignal): Promise<Reply> {
  let reply: Reply
  try {
    ;[reply] = await once(worker, 'message', { signal: stuck })
  } catch (cause) {
    if (stuck.aborted) throw stuck.reason
    throw new HarnessError('SLUICE_HARNESS_THREAD_FAILED', {
      received: cause instanceof Error ? cause.message : String(cause),
      expected: `its answer "${kind}"`,
      cause,
    })
  }
  if (reply.kind === kind) return reply
  throw new HarnessError('SLUICE_HARNESS_THREAD_FAILED', { received: `"${reply.kind}"`, expected: `"${kind}"` })
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}
