import type { Store } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { expectSameDecisions, expectSameStores, type Operation } from './differential.ts'
import { FakeClock } from './fake-clock.ts'
import { deferredStore, ReferenceStore } from './reference-store.ts'

/** A store that forgets to give back what is settled below its estimate. */
function forgetful(clock: FakeClock): Store<'sync'> {
  const store = new ReferenceStore(clock)
  return {
    mode: 'sync',
    decide: (batch) => store.decide(batch),
    settle: (receipt) =>
      store.settle(
        receipt,
        receipt.charges.map((charge) => charge.cost),
      ),
    block: (rule, key, micros) => store.block(rule, key, micros),
    reset: (limits, key) => store.reset(limits, key),
    close: () => store.close(),
  }
}

describe('two stores', () => {
  it('that decide the same are the same, whether they answer at once or by promise', async () => {
    await expectSameStores((clock) => ({
      one: new ReferenceStore(clock),
      other: deferredStore(new ReferenceStore(clock)),
    }))
  })

  it('that do not are told apart, at the first answer that differs', async () => {
    const clock = new FakeClock()
    const check: Operation = { kind: 'check', rule: 'fixed', key: 'a', cost: 3, partial: false, entitled: true }
    const sequence: Operation[] = [check, { kind: 'refund', which: 0, units: undefined }, check]
    const compare = expectSameDecisions(new ReferenceStore(clock), forgetful(clock), { operations: sequence, clock })
    await expect(compare).rejects.toThrow()
    const whole = expectSameStores((own) => ({ one: new ReferenceStore(own), other: forgetful(own) }))
    await expect(whole).rejects.toThrow(/Counterexample/)
  })
})
