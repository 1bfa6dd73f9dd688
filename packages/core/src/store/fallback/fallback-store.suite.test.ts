import { deferredStore, expectSameStores, FakeClock, FakeTimers, ReferenceStore, storeSuite } from '@sluice/testing'
import { expect, test } from 'vitest'
import { createLimiter } from '../../limiter/create-any-limiter.ts'
import type { Store } from '../store.ts'
import type { FallbackStoreOptions } from './fallback-options.ts'
import { type FallbackStore, fallbackStore } from './fallback-store.ts'

const timersOf = new WeakMap<FakeClock, FakeTimers>()

function decorated(clock: FakeClock, store: Store<'async'>, options: FallbackStoreOptions = {}): FallbackStore {
  const timers = new FakeTimers(clock)
  timersOf.set(clock, timers)
  return fallbackStore(store, { clock, timers, monotonicMs: () => clock.nowMicros() / 1000, ...options })
}

storeSuite('fallbackStore', {
  create: (clock) => decorated(clock, deferredStore(new ReferenceStore(clock))),
  advance: async (clock, ms) => await timersOf.get(clock)?.advance(ms),
})

test('answers as the store beneath, whatever is done to both', async () => {
  await expectSameStores((clock) => ({
    one: new ReferenceStore(clock),
    other: decorated(clock, deferredStore(new ReferenceStore(clock))),
  }))
})

/** A store that is not there. */
const absent: Store<'async'> = {
  mode: 'async',
  decide: () => Promise.reject(new Error('absent')),
  settle: () => Promise.reject(new Error('absent')),
  block: () => Promise.reject(new Error('absent')),
  reset: () => Promise.reject(new Error('absent')),
  close: () => Promise.resolve(),
}

test('without the store, one node that decides locally decides as the store would', async () => {
  const clock = new FakeClock()
  const rule = { algorithm: 'token-bucket', capacity: 5, refillPerSecond: 2 } as const
  const store = decorated(clock, absent, { failureMode: 'local' })
  const [one, other] = [createLimiter({ ...rule, clock }), createLimiter({ ...rule, clock, store })]
  for (let call = 0; call < 200; call++) {
    clock.advance((call * 37) % 300)
    const expected = one.check('key', { cost: call % 3 })
    expect({ ...(await other.check('key', { cost: call % 3 })), failure: undefined }).toEqual({ ...expected })
  }
  await store.close()
})
