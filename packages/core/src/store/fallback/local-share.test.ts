import { describe, expect, it } from 'vitest'
import { createLimiter } from '../../limiter/create-any-limiter.ts'
import type { Limiter } from '../../limiter/limiter.ts'
import type { Rule } from '../../rule/rule.ts'
import { compileRule } from '../../rule-kinds.ts'
import { createBatch, createItem } from '../batch.ts'
import { leasedStore } from '../leased/leased-store.ts'
import type { Store } from '../store.ts'
import { drain, drainAll, LocalNodes } from './local-nodes.test.support.ts'

const WINDOW = { algorithm: 'fixed-window', limit: 1000, window: '1h' } as const

async function take(limiter: Limiter<'async'>, units: number, key = 'key'): Promise<void> {
  const decision = await limiter.check(key, { cost: units })
  expect(decision).toMatchObject({ allowed: true, failure: undefined })
}

/** Every node sees the latest state of the key. */
async function lookAll(limiters: readonly Limiter<'async'>[], key = 'key'): Promise<void> {
  for (const limiter of limiters) await limiter.peek(key, { cost: 0 })
}

describe('the share of a node during an outage', () => {
  it('is a part of what it last saw to remain', async () => {
    const nodes = new LocalNodes(2)
    const limiters = nodes.limiters(WINDOW)
    await take(limiters[0]!, 499)
    await lookAll(limiters)
    nodes.isUp = false
    // 501 remain: 251 for each of the two, one more than there are.
    expect(await drain(limiters[0]!)).toBe(251)
    expect(await drain(limiters[1]!)).toBe(251)
  })

  it('is nothing for a key that is used up', async () => {
    const nodes = new LocalNodes(3)
    const limiters = nodes.limiters(WINDOW)
    await take(limiters[0]!, 1000)
    await lookAll(limiters)
    nodes.isUp = false
    expect(await drainAll(limiters)).toBe(0)
    expect(await limiters[0]!.check('key')).toMatchObject({ reason: 'limit', retryAfterMs: 3_600_000 })
  })

  it('is what a denial said to remain', async () => {
    const nodes = new LocalNodes(2)
    const [first, second] = nodes.limiters(WINDOW) as [Limiter<'async'>, Limiter<'async'>]
    await take(first, 990)
    expect(await second.check('key', { cost: 11 })).toMatchObject({ allowed: false, remaining: 10 })
    nodes.isUp = false
    expect(await drain(second)).toBe(5)
  })

  it('is not lowered by a question that charges nothing', async () => {
    const nodes = new LocalNodes(2)
    const limiter = nodes.limiter(WINDOW)
    await take(limiter, 500)
    expect(await limiter.peek('key', { cost: 400 })).toMatchObject({ allowed: true })
    nodes.isUp = false
    expect(await drain(limiter)).toBe(250)
  })

  it('is a part of the whole limit for a key that it has not seen, and for the next window', async () => {
    const nodes = new LocalNodes(2)
    const [first, second] = nodes.limiters(WINDOW) as [Limiter<'async'>, Limiter<'async'>]
    await take(first, 1000)
    nodes.isUp = false
    expect(await drain(first)).toBe(0)
    expect(await drain(second)).toBe(500)
    nodes.clock.advance(3_600_000)
    expect(await drain(first)).toBe(500)
    expect(await drain(second)).toBe(500)
  })

  it('is a part of the whole limit when the window in which it saw the key has ended', async () => {
    const nodes = new LocalNodes(2)
    const limiter = nodes.limiter(WINDOW)
    await take(limiter, 1000)
    nodes.clock.advance(3_600_000)
    nodes.isUp = false
    expect(await drain(limiter)).toBe(500)
  })

  it('is of each key and each limit alone', async () => {
    const nodes = new LocalNodes(2)
    const store = nodes.store()
    const { clock, timers } = nodes
    const rules = { hour: WINDOW, day: { ...WINDOW, limit: 100, window: '1d' } } as const
    const set = createLimiter({ rules, store, clock, timers })
    const both = [
      { rule: 'hour', key: 'a', cost: 100 },
      { rule: 'day', key: 'a', cost: 60 },
    ] as const
    expect((await set.checkAll(both)).allowed).toBe(true)
    // Denied by the day: the hour has lost nothing.
    expect((await set.checkAll(both)).allowed).toBe(false)
    nodes.isUp = false
    expect(await set.limiter('hour').peek('a', { cost: 0 })).toMatchObject({ remaining: 450 })
    expect(await set.limiter('day').peek('a', { cost: 0 })).toMatchObject({ remaining: 20 })
    expect(await set.limiter('hour').peek('b', { cost: 0 })).toMatchObject({ remaining: 500 })
    expect((await set.checkAll([both[0], { ...both[1], cost: 21 }])).allowed).toBe(false)
    expect((await set.checkAll([both[0], { ...both[1], cost: 20 }])).allowed).toBe(true)
    expect(await set.limiter('hour').peek('a', { cost: 0 })).toMatchObject({ remaining: 350 })
  })

  it('is of each window of a rule', async () => {
    const nodes = new LocalNodes(2)
    const windows = [
      { limit: 100, window: '1m' },
      { limit: 150, window: '1h' },
    ] as const
    const limiter = nodes.limiter({ algorithm: 'fixed-window', windows } as Rule)
    await take(limiter, 90)
    nodes.isUp = false
    expect(await drain(limiter)).toBe(5)
    nodes.clock.advance(60_000)
    // The minute has its whole share again, the hour half of what was left of it.
    expect(await drain(limiter)).toBe(25)
  })

  it('allows a partial grant of what it has left', async () => {
    const nodes = new LocalNodes(2)
    const limiter = nodes.limiter(WINDOW)
    expect(await limiter.check('key', { cost: 2000, partial: true })).toMatchObject({ cost: 1000 })
    nodes.isUp = false
    expect(await limiter.check('key', { cost: 5, partial: true })).toMatchObject({ allowed: false })
    expect(await limiter.check('other', { cost: 2000, partial: true })).toMatchObject({ allowed: true, cost: 500 })
  })
})

describe('the number of nodes', () => {
  it('stays for a key until its window ends', async () => {
    const nodes = new LocalNodes(4)
    const limiter = nodes.limiter(WINDOW)
    await take(limiter, 1000)
    nodes.isUp = false
    expect(await drain(limiter)).toBe(0)
    nodes.count = 2
    expect(await drain(limiter)).toBe(0)
    nodes.clock.advance(3_600_000)
    expect(await drain(limiter)).toBe(500)
  })

  it('is the latest one for the first local decision', async () => {
    const nodes = new LocalNodes(4)
    const limiter = nodes.limiter(WINDOW)
    await take(limiter, 200)
    nodes.count = 2
    nodes.isUp = false
    expect(await drain(limiter)).toBe(400)
  })
})

describe('several outages in one window', () => {
  it('admit no more than one share together', async () => {
    const nodes = new LocalNodes(2)
    const limiter = nodes.limiter(WINDOW)
    await take(limiter, 200)
    let admitted = 0
    for (let outage = 0; outage < 3; outage++) {
      nodes.isUp = false
      admitted += await drain(limiter)
      nodes.isUp = true
      await take(limiter, 100)
    }
    expect(admitted).toBe(400)
  })

  it('take less from a node that finds less', async () => {
    const nodes = new LocalNodes(2)
    const limiter = nodes.limiter(WINDOW)
    nodes.isUp = false
    await limiter.check('key', { cost: 100 })
    nodes.isUp = true
    await take(limiter, 900)
    nodes.isUp = false
    // 400 of its share are left, but only 100 of the limit.
    expect(await drain(limiter)).toBe(50)
  })
})

describe('what changes after the answer', () => {
  it('a settlement that charges more lowers the share', async () => {
    const nodes = new LocalNodes(2)
    const limiter = nodes.limiter(WINDOW)
    const reservation = await limiter.reserve('key', { cost: 100 })
    if (!('settle' in reservation)) throw new Error('denied')
    await reservation.settle(600)
    nodes.isUp = false
    expect(await drain(limiter)).toBe(200)
  })

  it('a settlement that charges more between two outages lowers the share', async () => {
    const nodes = new LocalNodes(2)
    const limiter = nodes.limiter(WINDOW)
    const reservation = await limiter.reserve('key', { cost: 100 })
    if (!('settle' in reservation)) throw new Error('denied')
    nodes.isUp = false
    expect(await limiter.peek('key', { cost: 0 })).toMatchObject({ remaining: 450 })
    nodes.isUp = true
    await reservation.settle(600)
    nodes.isUp = false
    expect(await drain(limiter)).toBe(200)
  })

  it('a settlement that gives back raises the share again', async () => {
    const nodes = new LocalNodes(2)
    const limiter = nodes.limiter(WINDOW)
    const reservation = await limiter.reserve('key', { cost: 1000 })
    if (!('settle' in reservation)) throw new Error('denied')
    await reservation.settle(200)
    nodes.isUp = false
    expect(await drain(limiter)).toBe(400)
  })

  it('a refund that an answer already includes is not counted twice', async () => {
    const nodes = new LocalNodes(2)
    const answered = Promise.withResolvers<void>()
    const remote = nodes.remote()
    const settle: Store<'async'>['settle'] = async (receipt, actuals) => {
      const settlement = await remote.settle(receipt, actuals)
      await answered.promise
      return settlement
    }
    const limiter = nodes.limiter(WINDOW, nodes.around({ ...remote, settle }))
    const decision = await limiter.check('key', { cost: 600 })
    await take(limiter, 300)
    const refunded = limiter.refund(decision)
    expect(await limiter.peek('key', { cost: 0 })).toMatchObject({ remaining: 700 })
    answered.resolve()
    expect(await refunded).toMatchObject({ corrected: -600 })
    nodes.isUp = false
    expect(await drain(limiter)).toBe(350)
  })

  it('a settlement that comes late charges all of it', async () => {
    const nodes = new LocalNodes(2)
    const limiter = nodes.limiter(WINDOW)
    await take(limiter, 200)
    const reservation = await limiter.reserve('key', { cost: 100, expiresAfter: '1s' })
    if (!('settle' in reservation)) throw new Error('denied')
    nodes.clock.advance(2000)
    expect(await limiter.peek('key', { cost: 0 })).toMatchObject({ remaining: 800 })
    expect(await reservation.settle(150)).toEqual({ outcome: 'late', corrected: 150 })
    nodes.isUp = false
    expect(await drain(limiter)).toBe(325)
  })

  it('a settlement that fails changes nothing', async () => {
    const nodes = new LocalNodes(2)
    const limiter = nodes.limiter(WINDOW)
    const decision = await limiter.check('key', { cost: 600 })
    nodes.isUp = false
    await expect(limiter.refund(decision)).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
    expect(await drain(limiter)).toBe(200)
  })

  it('a reset forgets the key, whether the store does it or not', async () => {
    const nodes = new LocalNodes(2)
    const limiter = nodes.limiter(WINDOW)
    await take(limiter, 1000)
    await limiter.reset('key')
    nodes.isUp = false
    expect(await drain(limiter)).toBe(500)
    nodes.isUp = true
    await take(limiter, 1000, 'other')
    nodes.isUp = false
    await expect(limiter.reset('other')).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
    expect(await drain(limiter, 'other')).toBe(500)
  })

  it.each([
    { limit: 200, left: 0 },
    { limit: 300, left: 0 },
    { limit: 500, left: 100 },
    { limit: 1000, left: 350 },
    { limit: 1100, left: 400 },
  ])('a limit of $limit that was 1000 applies to the 300 units that were taken', async ({ limit, left }) => {
    const nodes = new LocalNodes(2)
    const store = nodes.store()
    await store.decide(createBatch([createItem(compileRule('rule', WINDOW)[0]!, 'key', 300)]))
    nodes.isUp = false
    const item = createItem(compileRule('rule', { ...WINDOW, limit })[0]!, 'key', 0)
    await store.decide({ ...createBatch([item]), charge: false })
    expect(item.verdict.remaining).toBe(left)
  })
})

describe('a block', () => {
  it('that the store has reported applies during an outage, until it ends', async () => {
    const nodes = new LocalNodes(2)
    const [first, second] = nodes.limiters(WINDOW) as [Limiter<'async'>, Limiter<'async'>]
    await first.block('key', '10m')
    expect(await second.check('key')).toMatchObject({ reason: 'blocked' })
    nodes.isUp = false
    nodes.clock.advance(60_000)
    expect(await second.check('key')).toMatchObject({ reason: 'blocked', retryAfterMs: 540_000 })
    nodes.clock.advance(540_000)
    expect(await drain(second)).toBe(500)
  })

  it('that the store has reported as lifted does not apply', async () => {
    const nodes = new LocalNodes(2)
    const [first, second] = nodes.limiters(WINDOW) as [Limiter<'async'>, Limiter<'async'>]
    await first.block('key', '10m')
    expect(await second.check('key')).toMatchObject({ reason: 'blocked' })
    nodes.isUp = false
    expect(await second.check('key')).toMatchObject({ reason: 'blocked', failure: { mode: 'local' } })
    nodes.isUp = true
    await first.unblock('key')
    await take(second, 100)
    nodes.isUp = false
    expect(await drain(second)).toBe(450)
  })

  it('of one key denies a batch whole, and nothing is charged', async () => {
    const nodes = new LocalNodes(2)
    const { clock, timers } = nodes
    const rules = { first: WINDOW, second: WINDOW } as const
    const [one, other] = [nodes.store(), nodes.store()].map((store) => createLimiter({ rules, store, clock, timers }))
    await one!.limiter('second').block('key', '10m')
    const both = [
      { rule: 'first', key: 'key', cost: 100 },
      { rule: 'second', key: 'key', cost: 100 },
    ] as const
    expect(await other!.checkAll(both)).toMatchObject({ reason: 'blocked', rule: 'second' })
    nodes.isUp = false
    expect(await other!.checkAll(both)).toMatchObject({ reason: 'blocked', rule: 'second', retryAfterMs: 600_000 })
    expect(await other!.limiter('first').peek('key', { cost: 0 })).toMatchObject({ remaining: 500 })
  })

  it('that this node lifts does not hold', async () => {
    const nodes = new LocalNodes(2)
    const [first, second] = nodes.limiters(WINDOW) as [Limiter<'async'>, Limiter<'async'>]
    await first.block('key', '10m')
    expect(await second.check('key')).toMatchObject({ reason: 'blocked' })
    nodes.isUp = false
    await expect(second.unblock('key')).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
    expect(await drain(second)).toBe(500)
  })

  it('does not hide what was used before it', async () => {
    const nodes = new LocalNodes(2)
    const limiter = nodes.limiter(WINDOW)
    await take(limiter, 1000)
    await limiter.block('key', '10m')
    nodes.isUp = false
    expect(await limiter.check('key')).toMatchObject({ reason: 'blocked' })
    nodes.clock.advance(600_000)
    expect(await drain(limiter)).toBe(0)
  })
})

describe('the time of the store', () => {
  it.each([-1_800_000_000, 1_800_000_000])('is that of local windows: clocks that differ by %d µs', async (ahead) => {
    const nodes = new LocalNodes(2)
    nodes.storeAheadMicros = ahead
    const limiter = nodes.limiter(WINDOW)
    await take(limiter, 1000)
    nodes.isUp = false
    // The window of the store began half an hour ago; so did the node's.
    nodes.clock.advance(1_799_999)
    expect(await drain(limiter)).toBe(0)
    nodes.clock.advance(1)
    expect(await drain(limiter)).toBe(500)
    nodes.clock.advance(1_800_000)
    expect(await drain(limiter)).toBe(0)
  })
})

describe('by algorithm', () => {
  it.each<[string, Rule]>([
    ['gcra', { limit: 100, window: '100s' }],
    ['token-bucket', { algorithm: 'token-bucket', capacity: 100, refillPerSecond: 1 }],
    ['leaky-bucket-meter', { algorithm: 'leaky-bucket-meter', capacity: 100, leakPerSecond: 1 }],
    ['leaky-bucket-queue', { algorithm: 'leaky-bucket-queue', capacity: 100, ratePerSecond: 1 }],
  ])('a level flows off from where it was last seen: %s', async (_name, rule) => {
    const nodes = new LocalNodes(2)
    const limiters = nodes.limiters(rule)
    await take(limiters[0]!, 80)
    await lookAll(limiters)
    nodes.isUp = false
    nodes.clock.advance(20_000)
    // 20 were left, and 20 have come back.
    expect(await drainAll(limiters)).toBe(40)
    nodes.clock.advance(10_000)
    expect(await drainAll(limiters)).toBe(10)
  })

  it('a sliding window counter lets go of it as it does of everything', async () => {
    const nodes = new LocalNodes(2)
    const limiters = nodes.limiters({ algorithm: 'sliding-window-counter', limit: 100, window: '100s' })
    await take(limiters[0]!, 100)
    await lookAll(limiters)
    nodes.isUp = false
    nodes.clock.advance(99_000)
    expect(await drainAll(limiters)).toBe(0)
    nodes.clock.advance(51_000)
    expect(await drainAll(limiters)).toBe(50)
  })

  it.each<[string, Rule, number]>([
    ['log', { algorithm: 'sliding-window-log', limit: 100, window: '100s' }, 100_000],
    ['segments', { algorithm: 'sliding-window-log', limit: 100, window: '100s', segments: 10 }, 110_000],
  ])('a sliding window counts it from when it was last seen: %s', async (_name, rule, backAfterMs) => {
    const nodes = new LocalNodes(2)
    const limiters = nodes.limiters(rule)
    await take(limiters[0]!, 60)
    await lookAll(limiters)
    nodes.isUp = false
    nodes.clock.advance(50_000)
    expect(await drainAll(limiters)).toBe(40)
    nodes.clock.advance(backAfterMs - 50_000 - 1)
    expect(await drainAll(limiters)).toBe(0)
    nodes.clock.advance(1)
    expect(await drainAll(limiters)).toBe(60)
  })

  it('a calendar window ends with its period', async () => {
    const nodes = new LocalNodes(2)
    const window = { calendar: 'day', timeZone: 'Europe/Berlin' } as const
    const limiters = nodes.limiters({ algorithm: 'fixed-window', limit: 100, window })
    await take(limiters[0]!, 90)
    await lookAll(limiters)
    nodes.isUp = false
    nodes.clock.advance(22 * 3_600_000)
    expect(await drainAll(limiters)).toBe(10)
    nodes.clock.advance(3_600_000)
    expect(await drainAll(limiters)).toBe(100)
  })

  it('a window with rollover carries over what a node has left', async () => {
    const nodes = new LocalNodes(2)
    const limiters = nodes.limiters({ algorithm: 'fixed-window', limit: 100, window: '100s', rollover: true })
    await take(limiters[0]!, 60)
    await lookAll(limiters)
    nodes.isUp = false
    expect(await limiters[0]!.check('key', { cost: 10 })).toMatchObject({ allowed: true })
    nodes.clock.advance(100_000)
    // Of 20 for each, one has used 10: 10 carried over, and nothing by the other, which has decided nothing here.
    expect(await drain(limiters[0]!)).toBe(60)
    expect(await drain(limiters[1]!)).toBe(50)
  })

  it('a burst on top of a window counts for those who are entitled to it', async () => {
    const nodes = new LocalNodes(2)
    const burst = { capacity: 100, refillPerSecond: 0.001 }
    const rule = { algorithm: 'hybrid', limit: 100, window: '100s', burst } as const
    const [first, second] = nodes.limiters(rule) as [Limiter<'async'>, Limiter<'async'>]
    await take(first, 160)
    expect(await second.peek('key', { cost: 0, entitled: false })).toMatchObject({ remaining: 0 })
    nodes.isUp = false
    // The first knows that 40 of the burst are left; the second knows only the window.
    expect(await drain(first)).toBe(20)
    expect(await second.check('key', { entitled: false })).toMatchObject({ allowed: false })
    expect(await drain(second)).toBe(50)
  })

  it('a burst on top of a sliding window does not hide what is left of the window', async () => {
    const nodes = new LocalNodes(2)
    const rule = { algorithm: 'sliding-window-counter', limit: 100, window: '100s', burst: 200 } as const
    const limiter = nodes.limiter(rule)
    expect((await limiter.check('key', { cost: 60, entitled: false })).allowed).toBe(true)
    nodes.isUp = false
    expect(await limiter.peek('key', { cost: 0, entitled: false })).toMatchObject({ remaining: 20 })
  })

  it('slots that were taken count until their lease ends', async () => {
    const nodes = new LocalNodes(2)
    const limiter = nodes.limiter({ algorithm: 'concurrency', limit: 10, lease: '10s' })
    const held = [await limiter.reserve('key', { cost: 4 }), await limiter.reserve('key', { cost: 4 })]
    const [first] = held
    if (first === undefined || !('release' in first)) throw new Error('denied')
    await first.release()
    nodes.isUp = false
    const taken: { readonly allowed: boolean }[] = []
    for (let slot = 0; slot < 10; slot++) taken.push(await limiter.reserve('key'))
    // 6 of 10 are free.
    expect(taken.filter(({ allowed }) => allowed)).toHaveLength(3)
    nodes.clock.advance(10_000)
    expect((await limiter.reserve('key', { cost: 5 })).allowed).toBe(true)
  })

  it('slots that are renewed count for another lease', async () => {
    const nodes = new LocalNodes(2)
    const limiter = nodes.limiter({ algorithm: 'concurrency', limit: 10, lease: '10s' })
    const held = await limiter.reserve('key', { cost: 8 })
    if (!('renew' in held)) throw new Error('denied')
    for (let renewal = 0; renewal < 3; renewal++) {
      nodes.clock.advance(9000)
      await held.renew()
    }
    nodes.isUp = false
    expect((await limiter.reserve('key', { cost: 2 })).allowed).toBe(false)
    expect((await limiter.reserve('key')).allowed).toBe(true)
    nodes.clock.advance(10_000)
    expect((await limiter.reserve('key', { cost: 5 })).allowed).toBe(true)
  })
})

describe('with leases', () => {
  it('the share is a part of what the store has left besides them', async () => {
    const nodes = new LocalNodes(2)
    const leased = leasedStore(nodes.remote(), { timers: nodes.timers, monotonicMs: () => nodes.nowMs() })
    const limiter = nodes.limiter(WINDOW, nodes.around(leased))
    for (let call = 0; call < 300; call++) await take(limiter, 1)
    expect(leased.stats().localDecisions).toBeGreaterThan(200)
    nodes.isUp = false
    // What is on lease may still be spent; it is used up in the store.
    const left = createLimiter({ ...WINDOW, store: nodes.counters, clock: nodes.clock, name: 'rule' }).peek(
      'key',
    ).remaining
    const spent = leased.stats().heldUnits
    expect(left + spent).toBe(700)
    expect(await drain(limiter)).toBe(spent + Math.ceil(left / 2))
    await nodes.timers.advance(10_000)
  })
})

describe('what is remembered', () => {
  it('is bounded: of more keys than fit, those that have used least are forgotten first', async () => {
    const nodes = new LocalNodes(2)
    const limiter = nodes.limiter({ ...WINDOW, limit: 100 }, nodes.store({ maxLocalKeys: 64 }))
    for (let key = 0; key < 32; key++) await take(limiter, 100, `used-${key}`)
    for (let key = 0; key < 1000; key++) await take(limiter, 1, `key-${key}`)
    nodes.isUp = false
    for (let key = 0; key < 32; key++) expect(await limiter.check(`used-${key}`)).toMatchObject({ allowed: false })
  })

  it.each([63, 100_000_001, 1.5])('cannot be of %d keys', (maxLocalKeys) => {
    expect(() => new LocalNodes(1).store({ maxLocalKeys })).toThrow(
      expect.objectContaining({ code: 'SLUICE_INVALID_OPTION', received: maxLocalKeys }),
    )
  })

  it('is nothing of limits with another failure mode', async () => {
    const nodes = new LocalNodes(2)
    const { clock, timers } = nodes
    const store = nodes.store({ failureMode: 'open' })
    const rules = { open: WINDOW, local: { ...WINDOW, failureMode: 'local' } } as const
    const set = createLimiter({ rules, store, clock, timers })
    const both = [
      { rule: 'open', key: 'key', cost: 1000 },
      { rule: 'local', key: 'key', cost: 100 },
    ] as const
    await set.checkAll(both)
    nodes.isUp = false
    // Decided together, with the share of each: the bound is that of `local` alone.
    expect((await set.checkAll([{ ...both[0], cost: 500 }, both[1]])).allowed).toBe(true)
    expect((await set.limiter('open').check('key')).failure?.mode).toBe('open')
  })
})
