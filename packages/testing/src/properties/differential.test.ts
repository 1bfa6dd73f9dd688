import type { Store } from '@sluice/core'
import { memoryStore } from '@sluice/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FakeClock } from '../fakes/fake-clock.ts'
import { deferredStore, ReferenceStore } from '../models/reference-store.ts'
import {
  expectSameDecisions,
  expectSameStores,
  type Operation,
  type OperationOptions,
  operations,
} from './differential.ts'

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
    block: (rule, key, term) => store.block(rule, key, term),
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

  it('that lend units the same way are the same', async () => {
    const create = (clock: FakeClock) => ({
      one: new ReferenceStore(clock),
      other: deferredStore(new ReferenceStore(clock)),
    })
    await expectSameStores(create, { leases: true })
  })

  it('that do not lend units the same way are distinguished', async () => {
    const whole = expectSameStores((own) => ({ one: new ReferenceStore(own), other: forgetful(own) }), {
      leases: true,
      rules: ['bucket'],
    })
    await expect(whole).rejects.toThrow(/settleLease|adjust/)
    const lends = expectSameStores((own) => ({ one: new ReferenceStore(own), other: memoryStore({ clock: own }) }), {
      leases: true,
      rules: ['fixed'],
    })
    await expect(lends).rejects.toThrow(/"kind":"lease"/)
  })

  it('get calls for leases only when they are declared to have them', () => {
    const kinds = (options: OperationOptions): Set<string> =>
      new Set(fc.sample(operations(options), { numRuns: 300, seed: 1 }).flatMap((all) => all.map(({ kind }) => kind)))
    expect(kinds({}).has('lease')).toBe(false)
    expect(kinds({ leases: true, rules: ['log', 'slots'] }).has('lease')).toBe(false)
    expect([...kinds({ leases: true })]).toEqual(expect.arrayContaining(['lease', 'settleLease']))
  })

  it('that do not are distinguished, at the first answer that differs', async () => {
    const clock = new FakeClock()
    const check: Operation = { kind: 'check', rule: 'fixed', key: 'a', cost: 3, partial: false, entitled: true }
    const sequence: Operation[] = [check, { kind: 'refund', which: 0, units: undefined }, check]
    const compare = expectSameDecisions(new ReferenceStore(clock), forgetful(clock), { operations: sequence, clock })
    await expect(compare).rejects.toThrow()
    const whole = expectSameStores((own) => ({ one: new ReferenceStore(own), other: forgetful(own) }))
    await expect(whole).rejects.toThrow(/Counterexample/)
  })
})
