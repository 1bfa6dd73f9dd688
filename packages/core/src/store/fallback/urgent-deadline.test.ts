import { FakeClock, FakeTimers, START_MICROS, seededRandom } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import type { FailureMode } from '../../rule/rule.ts'
import { compileRule } from '../../rule-kinds.ts'
import { createBatch, createItem } from '../batch.ts'
import { CallbackStore, type PendingBatch } from '../callback-store.ts'
import type { Batch } from '../store.ts'
import { fallbackStore, startingFallbackStore } from './fallback-store.ts'

/** A store that completes a batch when the test says so. */
class WaitingStore extends CallbackStore {
  readonly pending: PendingBatch[] = []

  submit(pending: PendingBatch): void {
    pending.isSent = true
    this.pending.push(pending)
  }

  settle = (): Promise<never> => new Promise(() => undefined)
  block = (): Promise<never> => new Promise(() => undefined)
  reset = (): Promise<never> => new Promise(() => undefined)
  close = (): Promise<void> => Promise.resolve()
}

const LIMIT = compileRule('rule', { algorithm: 'fixed-window', limit: 10, window: '1h' })[0]!

function scene({ failureMode = 'open', isStarting = false }: { failureMode?: FailureMode; isStarting?: boolean } = {}) {
  const clock = new FakeClock()
  const timers = new FakeTimers(clock)
  const remote = new WaitingStore()
  const started = Promise.withResolvers<void>()
  const monotonicMs = (): number => (clock.nowMicros() - START_MICROS) / 1000
  const options = { clock, timers, monotonicMs, failureMode, urgentDeadlineMs: 15, random: seededRandom(1) }
  const start = { graceMs: 2000, untilStarted: () => started.promise, hasBreakers: false }
  const store = isStarting ? startingFallbackStore(remote, options, start) : fallbackStore(remote, options)
  const answers: string[] = []
  /** Asks, and notes who is answered by whom. */
  const ask = async (name: string, isUrgent: boolean): Promise<Batch> => {
    const batch = { ...createBatch([createItem(LIMIT, 'key', 1)]), isUrgent }
    const decided = await new Promise<Batch>((resolve, reject) => {
      const pending: PendingBatch = {
        batch,
        isSent: false,
        isAbandoned: false,
        next: undefined,
        complete: () => resolve(pending.batch),
        fail: reject,
      }
      store.submit(pending)
    })
    answers.push(`${name}: ${decided.failure?.cause ?? 'store'}`)
    return decided
  }
  return { timers, remote, store, ask, answers, start: () => started.resolve() }
}

describe('an urgent batch', () => {
  it('is decided without the store after its own deadline, others after theirs', async () => {
    const { timers, ask, answers, store } = scene()
    const all = [ask('usual', false), ask('urgent', true)]
    await timers.advance(14)
    expect(answers).toEqual([])
    await timers.advance(1)
    expect(answers).toEqual(['urgent: deadline'])
    await timers.advance(34)
    expect(answers).toEqual(['urgent: deadline'])
    await timers.advance(1)
    expect(answers).toEqual(['urgent: deadline', 'usual: deadline'])
    await Promise.all(all)
    expect(store.stats()).toMatchObject({ asked: 2, failed: 2, pending: 0 })
  })

  it('is decided by the store if that answers in time', async () => {
    const { timers, ask, answers, remote, store } = scene()
    const answer = ask('urgent', true)
    await timers.advance(14)
    remote.pending[0]!.batch.allowed = true
    remote.pending[0]!.complete()
    expect((await answer).allowed).toBe(true)
    await timers.advance(100)
    expect(answers).toEqual(['urgent: store'])
    expect(store.stats()).toMatchObject({ asked: 1, failed: 0, lateAnswers: 0, pending: 0 })
  })

  it.each<[FailureMode, boolean]>([
    ['open', true],
    ['closed', false],
    ['local', true],
  ])('follows the failure mode %s', async (failureMode, allowed) => {
    const { timers, ask } = scene({ failureMode })
    const answer = ask('urgent', true)
    await timers.advance(15)
    expect(await answer).toMatchObject({
      allowed,
      failure: { mode: failureMode, cause: 'deadline', charged: 'unknown' },
    })
  })

  it('does not wait for the start of the store, and is not sent afterwards', async () => {
    const { timers, ask, answers, remote, store, start } = scene({ isStarting: true })
    const all = [ask('usual', false), ask('urgent', true)]
    await timers.advance(15)
    expect(answers).toEqual(['urgent: deadline'])
    expect(await all[1]).toMatchObject({ allowed: true, failure: { cause: 'deadline', charged: 'no' } })
    expect(store.stats()).toMatchObject({ asked: 0, failed: 0, pending: 1 })
    start()
    await timers.advance(0)
    expect(remote.pending).toHaveLength(1)
    await timers.advance(50)
    expect(answers).toEqual(['urgent: deadline', 'usual: deadline'])
  })

  it('keeps the rest of its deadline when the store starts in time', async () => {
    const { timers, ask, answers, remote, start } = scene({ isStarting: true })
    void ask('urgent', true)
    await timers.advance(10)
    start()
    await timers.advance(4)
    expect([remote.pending.length, answers]).toEqual([1, []])
    await timers.advance(1)
    expect(answers).toEqual(['urgent: deadline'])
  })

  it('does not open the breaker if the store answers within the usual deadline', async () => {
    const { timers, ask, remote, store, answers } = scene()
    for (let call = 0; call < 50; call++) {
      const answer = ask('urgent', true)
      await timers.advance(20)
      remote.pending.at(-1)!.complete()
      await answer
    }
    const usual = ask('usual', false)
    expect(remote.pending).toHaveLength(51)
    expect(new Set(answers)).toEqual(new Set(['urgent: deadline']))
    expect(store.stats()).toMatchObject({ asked: 51, failed: 50, lateAnswers: 50, pending: 1 })
    remote.pending.at(-1)!.complete()
    expect((await usual).failure).toBeUndefined()
  })

  it('opens the breaker if the store does not answer within the usual deadline either', async () => {
    const { timers, ask, remote, answers } = scene()
    for (let call = 0; call < 6; call++) {
      const answer = ask('urgent', true)
      await timers.advance(50)
      await answer
    }
    expect(remote.pending).toHaveLength(5)
    expect(answers).toEqual([...Array(5).fill('urgent: deadline'), 'urgent: breaker'])
  })

  it.each([
    ['fails', 'urgent: breaker'],
    ['is answered', 'urgent: deadline'],
  ])('that %s late counts once for the breaker', async (outcome, last) => {
    const { timers, ask, remote, answers } = scene()
    for (let call = 0; call < 6; call++) {
      const sent = remote.pending.length
      const answer = ask('urgent', true)
      await timers.advance(20)
      const pending = remote.pending[sent]
      if (outcome === 'fails') pending?.fail(new Error('connection lost'))
      else pending?.complete()
      await answer
      await timers.advance(30)
    }
    expect(answers).toEqual([...Array(5).fill('urgent: deadline'), last])
  })

  it('is answered when the store is closed, once', async () => {
    const { timers, ask, store } = scene({ isStarting: true })
    const answers = Promise.allSettled([ask('held', true), ask('usual', false)])
    await store.close()
    expect(await answers).toMatchObject([
      { status: 'rejected', reason: { code: 'SLUICE_CLOSED' } },
      { status: 'rejected', reason: { code: 'SLUICE_CLOSED' } },
    ])
    await timers.advance(100)
  })
})
