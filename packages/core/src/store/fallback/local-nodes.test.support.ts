import { FakeClock, FakeTimers, ReferenceStore, START_MICROS } from '@sluice/testing'
import { createLimiter } from '../../limiter/create-any-limiter.ts'
import type { Limiter } from '../../limiter/limiter.ts'
import type { Rule } from '../../rule/rule.ts'
import type { Store } from '../store.ts'
import { storeUnavailable } from '../store-error.ts'
import type { FallbackStoreOptions } from './fallback-options.ts'
import { type FallbackStore, fallbackStore } from './fallback-store.ts'

/** Several nodes over one store that the test can take away. */
export class LocalNodes {
  readonly clock: FakeClock = new FakeClock()
  readonly timers: FakeTimers = new FakeTimers(this.clock)
  /** How far the clock of the store is ahead of the nodes' clocks. */
  storeAheadMicros = 0
  /** The store of all nodes, by its own clock. */
  readonly counters: ReferenceStore = new ReferenceStore({
    nowMicros: () => this.clock.nowMicros() + this.storeAheadMicros,
  })
  isUp = true
  /** How many nodes each of them knows of. */
  count: number

  constructor(count: number) {
    this.count = count
  }

  /** A store of one more node. */
  store(options: FallbackStoreOptions = {}, isReachable: () => boolean = () => true): FallbackStore {
    return this.around(this.remote(isReachable), options)
  }

  /** A fallback store around another. */
  around(store: Store<'async'>, options: FallbackStoreOptions = {}): FallbackStore {
    return fallbackStore(store, {
      failureMode: 'local',
      nodes: () => this.count,
      clock: this.clock,
      timers: this.timers,
      monotonicMs: () => this.nowMs(),
      ...options,
    })
  }

  nowMs(): number {
    return (this.clock.nowMicros() - START_MICROS) / 1000
  }

  /** The way of one node to the store. No breaker opens because of it: each call fails, and only that call. */
  remote(isReachable: () => boolean = () => true): Store<'async'> {
    const ask = <T>(act: () => T): Promise<T> =>
      this.isUp && isReachable()
        ? new Promise((resolve) => resolve(act()))
        : Promise.reject(storeUnavailable({ because: 'unreachable', problem: 'gone', partial: true }))
    return {
      mode: 'async',
      decide: (batch) => ask(() => this.counters.decide(batch)),
      settle: (receipt, actuals) => ask(() => this.counters.settle(receipt, actuals)),
      block: (rule, key, micros) => ask(() => this.counters.block(rule, key, micros)),
      reset: (limits, key) => ask(() => this.counters.reset(limits, key)),
      close: () => Promise.resolve(),
    }
  }

  limiter(rule: Rule, store: Store<'async'> = this.store()): Limiter<'async'> {
    return createLimiter({ ...rule, store, clock: this.clock, timers: this.timers, name: 'rule' })
  }

  /** A limiter of each node. */
  limiters(rule: Rule): Limiter<'async'>[] {
    return Array.from({ length: this.count }, () => this.limiter(rule))
  }
}

/** Units that a limiter admits, taken one by one until it denies. */
export async function drain(limiter: Limiter<'async'>, key = 'key'): Promise<number> {
  let admitted = 0
  while ((await limiter.check(key)).allowed) admitted++
  return admitted
}

/** Units that all limiters admit, each until it denies. */
export async function drainAll(limiters: readonly Limiter<'async'>[], key = 'key'): Promise<number> {
  let admitted = 0
  for (const limiter of limiters) admitted += await drain(limiter, key)
  return admitted
}
