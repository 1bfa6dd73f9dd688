import { deferredStore, FakeClock, ReferenceStore, START_MICROS } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { createLimiter } from '../../limiter/create-any-limiter.ts'
import type { Limit } from '../../rule/limit.ts'
import type { Rule } from '../../rule/rule.ts'
import { compileRule } from '../../rule-kinds.ts'
import { createBatch, createItem } from '../batch.ts'
import type { Batch, Receipt, Store } from '../store.ts'
import type { StoreEvent } from '../store-event.ts'
import { type DenyCacheOptions, denyCacheStore } from './deny-cache-store.ts'

const ONE = { algorithm: 'fixed-window', limit: 1, window: '1h' } as const

/** A store that counts the questions it gets, and may keep them until `letGo`. */
function countingStore(store: Store<'async'>) {
  const kept: (() => void)[] = []
  const state = { asked: 0, keeps: false }
  const arrival = (): Promise<void> =>
    state.keeps ? new Promise((resolve) => void kept.push(resolve)) : Promise.resolve()
  const counting: Store<'async'> = {
    ...store,
    async decide(batch) {
      state.asked++
      await store.decide(batch)
      await arrival()
    },
  }
  const letGo = () => {
    for (const go of kept.splice(0)) go()
  }
  return { counting, state, letGo }
}

function scene(options: DenyCacheOptions = {}, rule: Rule = ONE) {
  const clock = new FakeClock()
  const monotonicMs = () => (clock.nowMicros() - START_MICROS) / 1000
  const events: StoreEvent[] = []
  const counters = new ReferenceStore(clock)
  const { counting, state, letGo } = countingStore(deferredStore(counters))
  const store = denyCacheStore(counting, { monotonicMs, observe: (event) => void events.push(event), ...options })
  const limiter = createLimiter({ ...rule, store, clock, name: 'rule' })
  /** How many questions the store gets while something is done. */
  const asks = async (act: () => Promise<unknown>) => {
    const before = state.asked
    await act()
    return state.asked - before
  }
  return { clock, counters, store, limiter, state, letGo, events, asks }
}

function batchOf(limit: Limit, key: string, cost = 1): Batch {
  return createBatch([createItem(limit, key, cost)])
}

describe('a denial', () => {
  it('is answered again from memory, field by field, as of that time', async () => {
    const { clock, store, counters, asks, events } = scene()
    const [limit] = compileRule('rule', ONE)
    await store.decide(batchOf(limit!, 'key'))
    await store.decide(batchOf(limit!, 'key'))
    for (const ms of [0, 1, 98.999]) {
      clock.advance(ms)
      const [fromMemory, fromStore] = [batchOf(limit!, 'key'), batchOf(limit!, 'key')]
      expect(await asks(() => store.decide(fromMemory))).toBe(0)
      counters.decide(fromStore)
      const { next: _one, nextLength: _length, ...verdict } = fromStore.items[0]!.verdict
      expect(fromMemory).toMatchObject({ ...fromStore, items: [{ ...fromStore.items[0], verdict }] })
    }
    expect(events).toEqual(Array.from({ length: 3 }, () => ({ type: 'remembered', rule: 'rule' })))
  })

  it('is fetched again after the maximum age, counted from when the request was sent', async () => {
    const { clock, limiter, state, letGo, asks } = scene()
    await limiter.check('key')
    state.keeps = true
    const slow = limiter.check('key')
    for (let turn = 0; turn < 8; turn++) await undefined
    clock.advance(40)
    letGo()
    state.keeps = false
    expect((await slow).allowed).toBe(false)
    clock.advance(59.999)
    expect(await asks(() => limiter.check('key'))).toBe(0)
    clock.advance(0.001)
    expect(await asks(() => limiter.check('key'))).toBe(1)
  })

  it('ends when the store would allow, to the microsecond', async () => {
    const { clock, limiter, asks } = scene({}, { algorithm: 'token-bucket', capacity: 1, refillPerSecond: 20 })
    await limiter.check('key')
    await limiter.check('key')
    clock.advance(49.999)
    expect(await asks(() => limiter.check('key'))).toBe(0)
    expect(await limiter.check('key')).toMatchObject({ allowed: false, retryAfterMs: 1 })
    clock.advance(0.001)
    expect((await limiter.check('key')).allowed).toBe(true)
  })

  it('for ever is remembered no longer than any other', async () => {
    const { clock, limiter, asks } = scene()
    expect(await limiter.check('key', { cost: 2 })).toMatchObject({ reason: 'never' })
    expect(await asks(() => limiter.check('key', { cost: 2 }))).toBe(0)
    clock.advance(100)
    expect(await asks(() => limiter.check('key', { cost: 2 }))).toBe(1)
  })

  it('ends when an answer about another limit of the key says that it is blocked', async () => {
    const { counters, limiter, store, asks } = scene()
    const [other] = compileRule('other', ONE)
    await limiter.check('key')
    await limiter.check('key')
    for (const rule of ['rule', 'other']) counters.block(rule, 'key', 2 * 3_600_000_000)
    expect(await limiter.check('key')).toMatchObject({ reason: 'limit' })
    await store.decide(batchOf(other!, 'key'))
    expect(await limiter.check('key')).toMatchObject({ reason: 'blocked', retryAfterMs: 7_200_000 })
    // From now on both are remembered.
    expect(await asks(async () => [await limiter.check('key'), await store.decide(batchOf(other!, 'key'))])).toBe(0)
  })

  it('of a blocked key is remembered, until the block ends', async () => {
    const { clock, limiter, asks } = scene()
    await limiter.block('key', 30)
    await limiter.check('key')
    clock.advance(29)
    expect(await asks(() => limiter.check('key'))).toBe(0)
    expect(await limiter.check('key')).toMatchObject({ reason: 'blocked', retryAfterMs: 1 })
    clock.advance(1)
    expect((await limiter.check('key')).allowed).toBe(true)
  })

  it('costs the store one call per maximum age, however often it is requested', async () => {
    const { clock, limiter, state } = scene({ maxAgeMs: 200 })
    await limiter.check('key')
    for (let ms = 0; ms < 1000; ms++) {
      for (let call = 0; call < 50; call++) expect(await limiter.tryAcquire('key')).toBe(false)
      clock.advance(1)
    }
    expect(state.asked).toBe(1 + 5)
  })
})

describe('the store is called', () => {
  it.each<[string, Rule, (limiter: ReturnType<typeof scene>['limiter']) => Promise<unknown>]>([
    ['another key', ONE, (limiter) => limiter.check('other')],
    ['another cost', ONE, (limiter) => limiter.check('key', { cost: 2 })],
    ['without the burst', ONE, (limiter) => limiter.check('key', { entitled: false })],
    ['as much as there is', ONE, (limiter) => limiter.check('key', { partial: true })],
    ['only asking', ONE, (limiter) => limiter.peek('key')],
    ['reserving', ONE, (limiter) => limiter.reserve('key')],
    ['two keys', ONE, (limiter) => limiter.checkAll([{ key: 'key' }, { key: 'other' }])],
  ])('%s', async (_what, rule, ask) => {
    const { limiter, asks } = scene({}, rule)
    await limiter.check('key')
    await limiter.check('key')
    expect(await asks(() => limiter.check('key'))).toBe(0)
    expect(await asks(() => ask(limiter))).toBe(1)
  })

  it('a limit that was raised is another limit', async () => {
    const { store, asks } = scene()
    const [low, high] = [compileRule('rule', ONE)[0]!, compileRule('rule', { ...ONE, limit: 2 })[0]!]
    await store.decide(batchOf(low, 'key'))
    await store.decide(batchOf(low, 'key'))
    expect(await asks(() => store.decide(batchOf(low, 'key')))).toBe(0)
    const raised = batchOf(high, 'key')
    await store.decide(raised)
    expect(raised.allowed).toBe(true)
  })
})

describe('what this process does to a key is seen at once', () => {
  const denied = async (rule: Rule = ONE) => {
    const all = scene({}, rule)
    const decision = await all.limiter.check('key')
    await all.limiter.check('key')
    expect(await all.asks(() => all.limiter.check('key'))).toBe(0)
    return { ...all, decision }
  }

  it('a refund', async () => {
    const { limiter, decision } = await denied()
    await limiter.refund(decision)
    expect((await limiter.check('key')).allowed).toBe(true)
  })

  it('a reset', async () => {
    const { limiter } = await denied()
    await limiter.reset('key')
    expect((await limiter.check('key')).allowed).toBe(true)
  })

  it('a block, and its end', async () => {
    const { limiter } = await denied()
    await limiter.block('key', '1m')
    expect(await limiter.check('key')).toMatchObject({ reason: 'blocked' })
    await limiter.unblock('key')
    expect(await limiter.check('key')).toMatchObject({ reason: 'limit' })
  })

  it('a charge that leaves less', async () => {
    const { limiter } = scene({}, { ...ONE, limit: 5 })
    await limiter.check('key', { cost: 2 })
    expect(await limiter.check('key', { cost: 4 })).toMatchObject({ remaining: 3 })
    await limiter.check('key', { cost: 2 })
    expect(await limiter.check('key', { cost: 4 })).toMatchObject({ remaining: 1 })
  })

  it('a reservation that runs out', async () => {
    const { clock, limiter } = scene()
    await limiter.reserve('key', { expiresAfter: 150 })
    clock.advance(149)
    expect((await limiter.check('key')).allowed).toBe(false)
    clock.advance(1)
    expect((await limiter.check('key')).allowed).toBe(true)
    await limiter.check('key')
    clock.advance(1)
    expect(await limiter.check('key')).toMatchObject({ allowed: false })
  })

  it('the last of several reservations that run out', async () => {
    const { clock, limiter } = scene({}, { ...ONE, limit: 2 })
    await limiter.reserve('key', { expiresAfter: 250 })
    await limiter.reserve('key', { expiresAfter: 100 })
    clock.advance(100)
    expect((await limiter.check('key')).allowed).toBe(true)
    clock.advance(149)
    expect((await limiter.check('key')).allowed).toBe(false)
    clock.advance(1)
    expect((await limiter.check('key')).allowed).toBe(true)
  })

  it('something of one key, when several were denied together', async () => {
    const { limiter, asks } = scene()
    await limiter.check('b')
    const both = () => limiter.checkAll([{ key: 'a' }, { key: 'b' }])
    expect((await both()).allowed).toBe(false)
    expect(await asks(both)).toBe(0)
    await limiter.reset('b')
    expect((await both()).allowed).toBe(true)
  })

  it('a change that overtakes the answer to a question', async () => {
    const { limiter, state, letGo } = scene()
    const decision = await limiter.check('key')
    state.keeps = true
    const slow = limiter.check('key')
    for (let turn = 0; turn < 8; turn++) await undefined
    await limiter.refund(decision)
    letGo()
    state.keeps = false
    expect((await slow).allowed).toBe(false)
    expect((await limiter.check('key')).allowed).toBe(true)
  })

  it('a change that has not been answered when the question is', async () => {
    const clock = new FakeClock()
    const counters = new ReferenceStore(clock)
    let finish: () => void = () => undefined
    const slow: Store<'async'> = {
      ...deferredStore(counters),
      settle: (receipt: Receipt, actuals) =>
        new Promise((resolve) => {
          finish = () => resolve(counters.settle(receipt, actuals))
        }),
    }
    const store = denyCacheStore(slow, { monotonicMs: () => 0 })
    const limiter = createLimiter({ ...ONE, store, clock })
    const decision = await limiter.check('key')
    const refund = limiter.refund(decision)
    expect((await limiter.check('key')).allowed).toBe(false)
    finish()
    await refund
    expect((await limiter.check('key')).allowed).toBe(true)
  })
})

describe('what is not remembered', () => {
  it('an answer that was made without the store', async () => {
    const { store, asks } = scene()
    const [limit] = compileRule('rule', ONE)
    const failing = denyCacheStore({
      ...store,
      async decide(batch) {
        await store.decide(batch)
        batch.allowed = false
        batch.failure = { mode: 'closed', cause: 'deadline', charged: 'unknown' }
      },
    })
    await failing.decide(batchOf(limit!, 'key', 0))
    expect(await asks(() => failing.decide(batchOf(limit!, 'key', 0)))).toBe(1)
  })

  it('errors', async () => {
    const { limiter, store } = scene()
    await limiter.check('key')
    await limiter.check('key')
    await store.close()
    await expect(limiter.check('key')).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
    await expect(limiter.reset('key')).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
  })
})

describe('memory', () => {
  it('holds `maxKeys` keys, and drops the oldest', async () => {
    const { limiter, asks } = scene({ maxKeys: 2 })
    for (const key of ['a', 'b', 'c']) {
      await limiter.check(key)
      await limiter.check(key)
    }
    expect(await asks(() => limiter.check('b'))).toBe(0)
    expect(await asks(() => limiter.check('c'))).toBe(0)
    expect(await asks(() => limiter.check('a'))).toBe(1)
    expect(await asks(() => limiter.check('b'))).toBe(1)
  })

  it('does not answer a denial that it cannot end any more', async () => {
    const { limiter, asks } = scene({ maxKeys: 2 })
    await limiter.check('b')
    const both = () => limiter.checkAll([{ key: 'a' }, { key: 'b' }])
    await both()
    await limiter.check('a', { cost: 2 })
    expect(await asks(both)).toBe(0)
    await limiter.check('c', { cost: 2 })
    await limiter.reset('b')
    expect(await asks(both)).toBe(1)
  })

  it('does not answer a denial that one of its keys has no room for', async () => {
    const { limiter, asks } = scene()
    await limiter.check('b')
    const both = () => limiter.checkAll([{ key: 'a' }, { key: 'b' }])
    await both()
    for (let cost = 2; cost < 2 + 7; cost++) await limiter.check('b', { cost })
    expect(await asks(both)).toBe(0)
    await limiter.check('b', { cost: 9 })
    expect(await asks(both)).toBe(1)
  })

  it('holds a limited number of denials for one key', async () => {
    const { limiter, asks } = scene()
    for (let cost = 2; cost < 2 + 9; cost++) await limiter.check('key', { cost })
    expect(await asks(() => limiter.check('key', { cost: 3 }))).toBe(0)
    expect(await asks(() => limiter.check('key', { cost: 10 }))).toBe(0)
    expect(await asks(() => limiter.check('key', { cost: 2 }))).toBe(1)
  })
})

it.each<[DenyCacheOptions, string]>([
  [{ maxAgeMs: 0 }, 'maxAgeMs'],
  [{ maxAgeMs: 60_001 }, 'maxAgeMs'],
  [{ maxKeys: 0 }, 'maxKeys'],
])('does not take %j', (options, name) => {
  expect(() => scene(options)).toThrow(expect.objectContaining({ code: 'SLUICE_INVALID_OPTION' }))
  expect(() => scene(options)).toThrow(`"${name}"`)
})
