import { deferredStore, FakeClock, FakeTimers, ReferenceStore } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { compileRule } from '../rule-kinds.ts'
import { createBatch, createItem } from './batch.ts'
import { copyBatch } from './batch-copy.ts'
import { CallbackStore, callbackStore, completeAfter, type PendingBatch } from './callback-store.ts'
import { denyCacheStore } from './deny-cache/deny-cache-store.ts'
import { fallbackStore } from './fallback/fallback-store.ts'
import type { Batch, Store } from './store.ts'

const LIMIT = compileRule('rule', { algorithm: 'fixed-window', limit: 5, window: '1h' })[0]!

function batchOf(cost: number): Batch {
  return createBatch([createItem(LIMIT, 'key', cost)])
}

/** A pending batch that notes its completion. */
function pendingOf(batch: Batch): PendingBatch & { readonly ends: unknown[]; readonly ended: Promise<void> } {
  const ends: unknown[] = []
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  const end = (outcome: unknown): void => {
    ends.push(outcome)
    resolve()
  }
  return {
    batch,
    isSent: false,
    isAbandoned: false,
    next: undefined,
    ends,
    ended,
    complete: () => end('completed'),
    fail: end,
  }
}

/** A store whose `submit` is the test's. */
class SubmitStore extends CallbackStore {
  readonly submit: (pending: PendingBatch) => void

  constructor(submit: (pending: PendingBatch) => void) {
    super()
    this.submit = submit
  }

  settle = (): Promise<never> => Promise.reject(new Error('not in this test'))
  block = (): Promise<never> => Promise.reject(new Error('not in this test'))
  reset = (): Promise<never> => Promise.reject(new Error('not in this test'))
  close = (): Promise<void> => Promise.resolve()
}

describe('a store that decides by promise', () => {
  it('completes with the decision, and leaves the submitted batch as it was', async () => {
    const submitted = { ...batchOf(9), partial: true }
    const before = structuredClone(submitted)
    const pending = pendingOf(submitted)
    callbackStore(deferredStore(new ReferenceStore(new FakeClock()))).submit(pending)
    expect([pending.isSent, pending.ends]).toEqual([true, []])
    await pending.ended
    expect(pending.ends).toEqual(['completed'])
    expect(pending.batch).toMatchObject({ allowed: true, items: [{ cost: 5 }] })
    expect(submitted).toEqual(before)
  })

  it.each([
    ['rejects', () => Promise.reject(new Error('gone'))],
    [
      'throws',
      () => {
        throw new Error('gone')
      },
    ],
  ])('and %s fails the batch', async (_, decide) => {
    const pending = pendingOf(batchOf(1))
    completeAfter(pending, decide)
    await pending.ended
    expect(pending.ends).toEqual([new Error('gone')])
  })

  it('is adapted once: a store that decides by callback is itself', () => {
    const store = new SubmitStore(() => undefined)
    expect(callbackStore(store)).toBe(store)
  })
})

describe('the promise of a store that decides by callback', () => {
  it('has the decision in the batch that was passed, also when it was made in another', async () => {
    const reference = new ReferenceStore(new FakeClock())
    const store = new SubmitStore((pending) => {
      pending.batch = copyBatch(pending.batch)
      reference.decide(pending.batch)
      pending.complete()
    })
    const batch = batchOf(2)
    await store.decide(batch)
    expect(batch).toMatchObject({ allowed: true, items: [{ verdict: { ruling: 'allowed', remaining: 3 } }] })
  })

  it('rejects with the error', async () => {
    const store = new SubmitStore((pending) => pending.fail(new Error('gone')))
    await expect(store.decide(batchOf(1))).rejects.toThrow('gone')
  })
})

describe('a decorator between the fallback store and the store', () => {
  it.each([
    { isSent: false, charged: 'no' },
    { isSent: true, charged: 'unknown' },
  ])('passes on whether the batch was sent ($isSent), and that it was abandoned', async ({ isSent, charged }) => {
    const clock = new FakeClock()
    const timers = new FakeTimers(clock)
    const submitted: PendingBatch[] = []
    const silent: Store<'async'> = new SubmitStore((pending) => {
      if (isSent) pending.isSent = true
      submitted.push(pending)
    })
    const monotonicMs = (): number => clock.nowMicros() / 1000
    const store = fallbackStore(denyCacheStore(silent, { monotonicMs }), { clock, timers, monotonicMs })
    const batch = batchOf(1)
    const decided = store.decide(batch)
    expect(submitted[0]!.isAbandoned).toBe(false)
    await timers.advance(50)
    await decided
    expect(batch.failure).toMatchObject({ cause: 'deadline', charged })
    expect(submitted[0]!.isAbandoned).toBe(true)
  })
})
