import type { Clock, Limiter, Rule, Store } from '@sluice/core'
import { createLimiter, memoryStore } from '@sluice/core'
import { SharedClock } from '../callers/shared-clock.ts'
import type { Burst, BurstOutcome, Target, TargetOptions, TestBed } from '../tests/test-bed.ts'
import { releaseTasks } from '../tests/test-bed.ts'

/** How a store that belongs to one thread is made. */
export type CreateLocalStore = (clock: Clock) => Store<'sync'>

/** A store of one thread, by default the memory store, used by interleaved tasks of this thread. */
export function memoryTarget(
  { stopwatch }: TargetOptions,
  createStore: CreateLocalStore = (clock) => memoryStore({ clock }),
): Target {
  return {
    threads: 1,
    prepare: (rule) => Promise.resolve(new LocalTestBed(rule, createStore, stopwatch)),
    close: () => Promise.resolve(),
  }
}

class LocalTestBed implements TestBed {
  readonly #clock = SharedClock.create()
  readonly #store: Store<'sync'>
  readonly #limiter: Limiter<'sync'>
  readonly #stopwatch: Clock

  constructor(rule: Rule, createStore: CreateLocalStore, stopwatch: Clock) {
    this.#store = createStore(this.#clock)
    this.#limiter = createLimiter({ ...rule, store: this.#store })
    this.#stopwatch = stopwatch
  }

  release(burst: Burst): Promise<BurstOutcome> {
    return releaseTasks(burst, this.#stopwatch, (node) => this.#limiter.tryAcquire(node))
  }

  moveToReset(node: string): Promise<boolean> {
    this.#clock.moveTo(this.#limiter.peek(node).resetAt)
    return Promise.resolve(true)
  }

  async close(): Promise<void> {
    await this.#limiter.close()
    await this.#store.close()
  }
}
