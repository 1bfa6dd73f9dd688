import type { Store } from '@sluice/core'
import { memoryStore } from '@sluice/core'
import type { RuleSet } from '@sluice/core/policy'
import { FakeClock, FakeTimers } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import type { ReadAnswer } from './check-api.test.support.ts'
import { CheckApi, perUser } from './check-api.test.support.ts'

const JOB = { tenantId: 'acme', resource: '/jobs' }

const ONE_JOB: RuleSet = {
  rules: [
    {
      resource: '/jobs',
      dimension: 'tenant',
      algorithm: 'concurrency',
      limit: 1,
      lease: '30s',
      penalty: { after: 3, within: '1m', block: '1h' },
    },
  ],
}

/** Handlers whose waits pass as the test says. */
function waiting(ruleSet: RuleSet = ONE_JOB): {
  readonly api: CheckApi
  readonly clock: FakeClock
  readonly timers: FakeTimers
  /** Asks, and notes when the answer comes. */
  readonly ask: (body: object, signal?: AbortSignal) => { answer: ReadAnswer | undefined; atMs: number }
} {
  const clock = new FakeClock()
  const timers = new FakeTimers(clock)
  const startMs = clock.nowMicros() / 1000
  const api = new CheckApi({ store: memoryStore({ clock }), clock, ruleSet, timers })
  const ask = (body: object, signal?: AbortSignal): { answer: ReadAnswer | undefined; atMs: number } => {
    const asked: { answer: ReadAnswer | undefined; atMs: number } = { answer: undefined, atMs: Number.NaN }
    void api.post('acquire', body, signal).then((answer) => {
      asked.answer = answer
      asked.atMs = clock.nowMicros() / 1000 - startMs
    })
    return asked
  }
  return { api, clock, timers, ask }
}

describe('a request that waits for a slot', () => {
  it('gets one at once when one is free', async () => {
    const { ask, timers } = waiting()
    const asked = ask({ ...JOB, maxWaitMs: 5000 })
    await timers.advance(0)
    expect(asked).toMatchObject({ atMs: 0, answer: { status: 200, body: { leaseMs: 30_000 } } })
    expect(timers.pending).toBe(0)
  })

  it('gets one at the instant at which it is released, in the order of arrival', async () => {
    const { api, ask, timers } = waiting()
    const { reservationId } = (await api.post('acquire', JOB)).body
    const asked = [1, 2, 3].map(() => ask({ ...JOB, maxWaitMs: 5000 }))
    await timers.advance(2007)
    expect(asked.map(({ answer }) => answer)).toEqual([undefined, undefined, undefined])
    await api.post('release', { reservationId })
    await timers.advance(0)
    expect(asked[0]).toMatchObject({ atMs: 2007, answer: { status: 200, body: { allowed: true } } })
    await timers.advance(1000)
    await api.post('release', { reservationId: asked[0]!.answer!.body['reservationId'] })
    await timers.advance(0)
    expect(asked[1]).toMatchObject({ atMs: 3007, answer: { status: 200 } })
    await timers.advance(2000)
    expect(asked[2]).toMatchObject({ atMs: 5000, answer: { status: 429 } })
    expect(timers.pending).toBe(0)
  })

  it('gets one within 100 ms when another thread or node releases it', async () => {
    const clock = new FakeClock()
    const timers = new FakeTimers(clock)
    const counters = memoryStore({ clock })
    // Two stores over the same counters: neither hears of what the other gives back.
    const node = (): CheckApi => new CheckApi({ store: sameCounters(counters), clock, ruleSet: ONE_JOB, timers })
    const [here, there] = [node(), node()]
    const { reservationId } = (await there.post('acquire', JOB)).body
    let status: number | undefined
    void here.post('acquire', { ...JOB, maxWaitMs: 5000 }).then((answer) => {
      status = answer.status
    })
    await timers.advance(3000)
    expect(status).toBeUndefined()
    await there.post('release', { reservationId })
    await timers.advance(100)
    expect(status).toBe(200)
  })

  it('gets one when the lease of a silent holder ends', async () => {
    const { api, ask, timers } = waiting()
    await api.post('acquire', JOB)
    await timers.advance(10_000)
    const asked = ask({ ...JOB, maxWaitMs: 30_000 })
    await timers.advance(19_999)
    expect(asked.answer).toBeUndefined()
    await timers.advance(1)
    expect(asked.answer).toMatchObject({ status: 200 })
  })

  it('is denied when its time is over, and not before', async () => {
    const { api, ask, timers } = waiting()
    await api.post('acquire', JOB)
    const asked = ask({ ...JOB, maxWaitMs: 4321 })
    await timers.advance(4320)
    expect(asked.answer).toBeUndefined()
    await timers.advance(1)
    expect(asked).toMatchObject({ atMs: 4321, answer: { status: 429, headers: { 'Retry-After': '26' } } })
    expect(timers.pending).toBe(0)
  })

  it('counts as one denial, however often it polled', async () => {
    const { api, ask, timers } = waiting()
    const { reservationId } = (await api.post('acquire', JOB)).body
    for (let wait = 0; wait < 2; wait++) {
      ask({ ...JOB, maxWaitMs: 3000 })
      await timers.advance(3000)
    }
    await api.post('release', { reservationId })
    expect((await api.post('acquire', JOB)).status).toBe(200)
  })

  it('does not wait where that does not help', async () => {
    const { api, ask, timers } = waiting({ ...ONE_JOB, denyList: [{ name: 'bad', match: { cidrs: ['192.0.2.1'] } }] })
    api.engine.block('tenant', 'banned', { duration: '1h' })
    const asked = [{ tokens: 2 }, { clientIp: '192.0.2.1' }, { tenantId: 'banned' }].map((call) =>
      ask({ ...JOB, ...call, maxWaitMs: 30_000 }),
    )
    await timers.advance(0)
    expect(asked.map(({ answer }) => answer?.body['reason'])).toEqual(['never', 'denied', 'blocked'])
    expect(timers.pending).toBe(0)
  })

  it('waits for units too', async () => {
    const { ask, timers } = waiting(perUser(1))
    const call = { userId: 'ann', resource: '/orders', maxWaitMs: 30_000 }
    await timers.advance(45_000)
    const asked = [ask(call), ask(call)]
    await timers.advance(15_250)
    expect(asked.map(({ answer }) => answer?.status)).toEqual([200, 200])
    expect(asked[0]!.atMs).toBe(45_000)
    expect(asked[1]!.atMs).toBeGreaterThanOrEqual(60_000)
  })

  it('leaves when the client does, and takes nothing', async () => {
    const { api, ask, timers } = waiting()
    const { reservationId } = (await api.post('acquire', JOB)).body
    const client = new AbortController()
    const asked = ask({ ...JOB, maxWaitMs: 30_000 }, client.signal)
    await timers.advance(1000)
    client.abort()
    await timers.advance(0)
    expect(asked.answer?.status).toBe(429)
    expect(timers.pending).toBe(0)
    await api.post('release', { reservationId })
    expect(await api.remaining(JOB)).toBe(1)
  })

  it('gives the slot back when the client left just before', async () => {
    const { api, ask, timers } = waiting()
    ask({ ...JOB, maxWaitMs: 30_000 }, AbortSignal.abort())
    await timers.advance(0)
    expect(await api.remaining(JOB)).toBe(1)
  })

  it('is answered at once when too many wait already', async () => {
    const { api, ask, timers } = waiting({ rules: ONE_JOB.rules.map(({ penalty: _, ...rule }) => rule) })
    await api.post('acquire', JOB)
    for (let round = 0; round < 2; round++) {
      const crowd = Array.from({ length: 1001 }, () => ask({ ...JOB, maxWaitMs: 3000 }))
      await timers.advance(0)
      expect(crowd.filter(({ answer }) => answer?.status === 429).length).toBe(1)
      await timers.advance(3000)
      expect(crowd.filter(({ answer }) => answer?.status === 429).length).toBe(1001)
    }
  })
})

/** Another store that counts where `store` does. */
function sameCounters(store: Store<'sync'>): Store<'sync'> {
  return {
    mode: 'sync',
    decide: (batch) => store.decide(batch),
    settle: (receipt, actuals) => store.settle(receipt, actuals),
    block: (rule, key, term) => store.block(rule, key, term),
    reset: (limits, key) => store.reset(limits, key),
    close: () => store.close(),
  }
}
