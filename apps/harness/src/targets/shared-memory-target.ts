import type { Limiter, Rule, SharedMemoryStore } from '@sluice/core'
import { createLimiter, sharedMemoryStore, systemTimers } from '@sluice/core'
import { compileRule } from '@sluice/core/internal'
import { SharedClock } from '../callers/shared-clock.ts'
import { WorkerPool } from '../callers/worker-pool.ts'
import type { Burst, BurstOutcome, Target, TargetOptions, TestBed } from '../tests/test-bed.ts'

/** Room for the nodes of all tests. */
const MAX_KEYS = 64

/** State that the store has room for in any case. */
const LEAST_STATE_SIZE = 4

/** Far longer than any order takes, on any machine. */
const DEADLINE_MS = 60_000

/** The shared memory store, asked by real threads. */
export function sharedMemoryTarget({ threads, stopwatch }: TargetOptions): Target {
  const pool = new WorkerPool({ threads, stopwatch, timers: systemTimers, deadlineMs: DEADLINE_MS })
  return {
    threads,
    prepare: (rule) => SharedTestBed.prepare(rule, pool),
    close: () => pool.close(),
  }
}

class SharedTestBed implements TestBed {
  readonly #pool: WorkerPool
  readonly #clock: SharedClock
  readonly #store: SharedMemoryStore
  readonly #limiter: Limiter<'sync'>

  private constructor(rule: Rule, pool: WorkerPool) {
    const stateSize = compileRule('default', rule).reduce((most, limit) => Math.max(most, limit.stateSize), 0)
    this.#pool = pool
    this.#clock = SharedClock.create()
    this.#store = sharedMemoryStore({
      maxKeys: MAX_KEYS,
      maxStateSize: Math.max(LEAST_STATE_SIZE, stateSize),
      // This thread is attached as well.
      maxThreads: pool.threads + 1,
      clock: this.#clock,
    })
    this.#limiter = createLimiter({ ...rule, store: this.#store })
  }

  static async prepare(rule: Rule, pool: WorkerPool): Promise<TestBed> {
    const bed = new SharedTestBed(rule, pool)
    await pool.attach({ rule, handle: bed.#store.handle(), clockMemory: bed.#clock.memory })
    return bed
  }

  release(burst: Burst): Promise<BurstOutcome> {
    return this.#pool.burst(burst)
  }

  moveToReset(node: string): Promise<boolean> {
    this.#clock.moveTo(this.#limiter.peek(node).resetAt)
    return Promise.resolve(true)
  }

  async close(): Promise<void> {
    await this.#pool.detach()
    await this.#limiter.close()
    await this.#store.close()
  }
}
