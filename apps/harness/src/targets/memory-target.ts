import type { Clock, Limiter, Rule, Store } from '@sluice/core'
import { createLimiter, memoryStore } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import { SharedClock } from '../callers/shared-clock.ts'
import type { Burst, BurstOutcome, Target, TargetOptions, TestBed } from '../tests/test-bed.ts'

/** How a store that belongs to one thread is made. */
export type CreateLocalStore = (clock: Clock) => Store<'sync'>

/** A store of one thread, by default the memory store, asked by interleaved tasks of this thread. */
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

  async release({ nodes, requestsPerNode }: Burst): Promise<BurstOutcome> {
    const gate = Promise.withResolvers<void>()
    const approvedPerNode = nodes.map(() => 0)
    const request = async (node: string, index: number): Promise<void> => {
      await gate.promise
      if (this.#limiter.tryAcquire(node)) approvedPerNode[index]! += 1
    }
    const requests = Array.from({ length: requestsPerNode }, () => nodes.map(request)).flat()
    const startMicros = this.#stopwatch.nowMicros()
    gate.resolve()
    await Promise.all(requests)
    return { approvedPerNode, ms: (this.#stopwatch.nowMicros() - startMicros) / MICROS_PER_MS }
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
