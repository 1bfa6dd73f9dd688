import { deferredStore, expectSameStores, FakeTimers, ReferenceStore, storeSuite } from '@sluice/testing'
import { describe, it } from 'vitest'
import { leasedStore } from './leased-store.ts'

// The limits of the suite are below the least that leases are taken of: what it proves is that all else passes through
// unchanged. Leases themselves answer with an estimate of what remains, and have tests of their own.
storeSuite('leased', {
  create: (clock) => leasedStore(deferredStore(new ReferenceStore(clock)), { timers: new FakeTimers(clock) }),
})

describe('a leased store', () => {
  it('answers random operations on small limits as the store does', async () => {
    await expectSameStores(
      (clock) => ({
        one: new ReferenceStore(clock),
        other: leasedStore(deferredStore(new ReferenceStore(clock)), { timers: new FakeTimers(clock) }),
      }),
      { leases: true, numRuns: 300 },
    )
  })
})
