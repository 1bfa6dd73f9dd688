import { deferredStore, FakeClock, HOSTILE_KEYS, seededRandom } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import type { ErrorCode } from '../errors.ts'
import { isSluiceError } from '../errors.ts'
import type { Rule } from '../rule/rule.ts'
import {
  concurrency,
  fixedWindow,
  gcra,
  hybrid,
  leakyBucketMeter,
  leakyBucketQueue,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from '../rule/rule.ts'
import { memoryStore } from '../store/memory/memory-store.ts'
import { createLimiter } from './create-any-limiter.ts'
import type { Limiter } from './limiter.ts'

const rule = { limit: 3, window: '1m' } as const

/** A limiter of any options, on a clock that stands still. */
function create(options: unknown): Limiter<'sync'> {
  const timed = typeof options === 'object' && options !== null ? { clock: new FakeClock(), ...options } : options
  return createLimiter(timed as Parameters<typeof createLimiter>[0] & { store?: undefined })
}

/** The code that a misuse is answered with, and its message. */
function misuse(use: () => unknown): { code: ErrorCode; message: string } {
  try {
    use()
  } catch (error) {
    if (isSluiceError(error)) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

describe('createLimiter', () => {
  it('works with a rule and nothing else', () => {
    const limiter = createLimiter({ ...rule, clock: new FakeClock() })
    expect([1, 2, 3, 4].map(() => limiter.tryAcquire('key'))).toEqual([true, true, true, false])
  })

  it('takes what the builders make', () => {
    const window = '1m'
    const built: Rule[] = [
      tokenBucket({ capacity: 2, refillPerSecond: 1 }),
      leakyBucketMeter({ capacity: 2, leakPerSecond: 1 }),
      leakyBucketQueue({ capacity: 2, ratePerSecond: 1 }),
      fixedWindow({ limit: 2, window, rollover: true }),
      slidingWindowCounter({ limit: 2, window }),
      slidingWindowLog({ limit: 2, window, segments: 3 }),
      gcra({ limit: 2, window, burst: 1 }),
      hybrid({ limit: 2, window, burst: { capacity: 1, refillPerSecond: 1 } }),
      concurrency({ limit: 2, lease: window }),
    ]
    for (const one of built) expect(create(one).tryAcquire('key')).toBe(true)
  })

  it('names its rule in every decision', () => {
    expect(createLimiter(rule).check('key').rule).toBe('default')
    expect(createLimiter({ ...rule, name: 'login' }).check('key').rule).toBe('login')
    const set = createLimiter({ rules: { login: rule, search: rule } })
    expect(set.limiter('search').check('key').rule).toBe('search')
  })

  it('does not change its options, nor look at them again', () => {
    const windows = [{ limit: 1, window: '1m' }] as [{ limit: number; window: '1m' }]
    const options = { windows, clock: new FakeClock() }
    const limiter = create(Object.freeze(options))
    windows[0].limit = 100
    expect([limiter.tryAcquire('key'), limiter.tryAcquire('key')]).toEqual([true, false])
  })

  it('draws from the given chance', () => {
    let drawn = 0
    const random = seededRandom(1)
    const counting = {
      nextUint32: () => {
        drawn++
        return random.nextUint32()
      },
    }
    const limiter = create({ algorithm: 'concurrency', limit: 2, lease: '1m', random: counting })
    const before = drawn
    limiter.check('key')
    expect(drawn).toBeGreaterThan(before)
  })

  it('says whether it holds slots', () => {
    expect(create({ algorithm: 'concurrency', limit: 2, lease: '1m' }).holdsSlots).toBe(true)
    expect(create(rule).holdsSlots).toBe(false)
  })

  it.each<[string, unknown, ErrorCode, RegExp]>([
    ['nothing', undefined, 'SLUICE_INVALID_OPTION', /createLimiter needs options; received undefined/],
    ['a string', '100/m', 'SLUICE_INVALID_OPTION', /createLimiter needs options/],
    ['no rule', {}, 'SLUICE_INVALID_RULE', /unusable "limit"/],
    ['an unknown option', { ...rule, maxKeys: 5 }, 'SLUICE_INVALID_RULE', /the option "maxKeys"/],
    [
      'a negative maxWaiting',
      { ...rule, maxWaiting: -1 },
      'SLUICE_INVALID_OPTION',
      /"maxWaiting" cannot be used; received -1/,
    ],
    ['a fractional maxWaiting', { ...rule, maxWaiting: 0.5 }, 'SLUICE_INVALID_OPTION', /"maxWaiting"/],
    [
      'rules that are none',
      { rules: undefined },
      'SLUICE_INVALID_OPTION',
      /"rules" cannot be used; received undefined/,
    ],
    ['rules that are null', { rules: null }, 'SLUICE_INVALID_OPTION', /"rules" cannot be used; received null/],
    [
      'rules and a rule',
      { rules: { a: rule }, limit: 5 },
      'SLUICE_INVALID_OPTION',
      /"limit" cannot stand beside "rules"/,
    ],
    [
      'rules and a name',
      { rules: { a: rule }, name: 'a' },
      'SLUICE_INVALID_OPTION',
      /"name" cannot stand beside "rules"/,
    ],
    [
      'a bad name',
      { ...rule, name: 'a b' },
      'SLUICE_INVALID_RULE',
      /the name of a rule cannot be used; received "a b"/,
    ],
    [
      'a bad rule in a set',
      { rules: { a: rule, b: { limit: -1, window: '1m' } } },
      'SLUICE_INVALID_RULE',
      /rule "b" has an unusable "limit"/,
    ],
    [
      'a window of zero',
      { limit: 1, window: 0 },
      'SLUICE_INVALID_DURATION',
      /"window" is not a usable duration; received 0/,
    ],
  ])('rejects %s', (_what, options, code, message) => {
    const error = misuse(() => create(options))
    expect(error.code).toBe(code)
    expect(error.message).toMatch(message)
  })

  it('rejects one name for two rules on one store, and allows it on two', () => {
    const store = memoryStore({ clock: new FakeClock() })
    createLimiter({ ...rule, store })
    createLimiter({ ...rule, store })
    const error = misuse(() => createLimiter({ ...rule, limit: 4, store }))
    expect(error.code).toBe('SLUICE_RULE_CONFLICT')
    expect(error.message).toMatch(/already uses the name "default".*Give this limiter a "name" of its own/)
    createLimiter({ ...rule, limit: 4, store: memoryStore({ clock: new FakeClock() }) })
    expect(misuse(() => createLimiter({ store, rules: { default: { ...rule, window: '2m' } } })).code).toBe(
      'SLUICE_RULE_CONFLICT',
    )
  })
})

describe('a misused call', () => {
  const calls: [string, (limiter: Limiter<'sync'>, key: string, cost: number) => unknown][] = [
    ['check', (limiter, key, cost) => limiter.check(key, { cost })],
    ['peek', (limiter, key, cost) => limiter.peek(key, { cost })],
    ['checkAll', (limiter, key, cost) => limiter.checkAll([{ key: 'good' }, { key, cost }])],
    ['reserve', (limiter, key, cost) => limiter.reserve(key, { cost })],
  ]
  const badCosts = [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '1', 1n, {}] as unknown as number[]
  const badKeys = ['', 'k'.repeat(1_000_000), undefined, null, 5, {}] as unknown as string[]

  describe.each([
    ['a rule', rule],
    ['a rule that is off', { limit: 'off', window: '1m' } as const],
    ['a rule of several windows', { windows: [rule] }],
    ['slots', { algorithm: 'concurrency', limit: 3, lease: '1m' } as const],
  ])('on %s', (_what, limits) => {
    it.each(calls)('%s: a cost that is no number of units', (_method, call) => {
      for (const cost of badCosts) {
        expect(misuse(() => call(create(limits), 'key', cost)).code).toBe('SLUICE_INVALID_COST')
      }
    })

    it.each([...calls, ['tryAcquire', (limiter: Limiter<'sync'>, key: string) => limiter.tryAcquire(key)] as const])(
      '%s: a key that is no text of 1 to 4096',
      (_method, call) => {
        for (const key of badKeys) expect(misuse(() => call(create(limits), key, 1)).code).toBe('SLUICE_INVALID_KEY')
      },
    )

    it('charges nothing', () => {
      const limiter = create(limits)
      for (const [, call] of calls) for (const cost of badCosts) misuse(() => call(limiter, 'key', cost))
      const { remaining, limit } = limiter.peek('key')
      expect(remaining).toBe(limit)
    })
  })

  it('says what was received and what to do', () => {
    const error = misuse(() => create(rule).check('key', { cost: 1.5 }))
    expect(error.message).toBe(
      'SLUICE_INVALID_COST: the cost cannot be used; received 1.5; expected a whole number of units, 0 or more. ' +
        'Round it up, or count in a smaller unit. To give units back, use refund or adjust.',
    )
  })

  it('a refund of a cost that is none', () => {
    const limiter = create(rule)
    const decision = limiter.check('key')
    expect(misuse(() => limiter.refund(decision, -1)).code).toBe('SLUICE_INVALID_COST')
    expect(limiter.refund(decision)).toMatchObject({ corrected: -1 })
  })

  it('a settlement of a cost that is none, which can be made good', () => {
    const limiter = create(rule)
    const reservation = limiter.reserve('key', { cost: 2 })
    if (!reservation.allowed) throw new Error('denied')
    expect(misuse(() => reservation.settle(Number.NaN)).code).toBe('SLUICE_INVALID_COST')
    expect(reservation.settle(1)).toEqual({ outcome: 'settled', corrected: -1 })
  })

  it.each([0, -1, 'soon', Number.NaN])('a block or a reservation for %s', (duration) => {
    const limiter = create(rule)
    expect(misuse(() => limiter.block('key', duration as number)).code).toBe('SLUICE_INVALID_DURATION')
    expect(misuse(() => limiter.reserve('key', { expiresAfter: duration as number })).code).toBe(
      'SLUICE_INVALID_DURATION',
    )
    expect(limiter.peek('key').remaining).toBe(3)
  })

  it('a refund of something that is no decision of a limiter', () => {
    const limiter = create(rule)
    const decision = limiter.check('key', { cost: 3 })
    for (const copy of [{ ...decision }, JSON.parse(JSON.stringify(decision)), structuredClone(decision)]) {
      const error = misuse(() => limiter.refund(copy))
      expect(error.code).toBe('SLUICE_INVALID_OPTION')
      expect(error.message).toMatch(
        /it is a copy, or another process made it.*Keep that object and pass it to refund\(\)/,
      )
    }
    expect(limiter.peek('key').remaining).toBe(0)
    // A decision that charged nothing has nothing to refund, even if the caller built it.
    const nothing = { outcome: 'settled', corrected: 0 }
    expect(limiter.refund({ ...limiter.check('key') })).toEqual(nothing)
    const unlimited = create({ limit: 'off', window: '1m' })
    expect(unlimited.refund(unlimited.check('key'))).toEqual(nothing)
  })
})

describe('a key', () => {
  it('may be any string', () => {
    const limiter = create({ ...rule, limit: 1 })
    for (const key of HOSTILE_KEYS) expect(limiter.tryAcquire(key)).toBe(true)
    for (const key of HOSTILE_KEYS) expect(limiter.tryAcquire(key)).toBe(false)
  })
})

describe('limit 0', () => {
  it('denies all, for ever', async () => {
    const limiter = create({ limit: 0, window: '1m' })
    expect(limiter.tryAcquire('key')).toBe(false)
    expect(limiter.check('key')).toMatchObject({ allowed: false, reason: 'never', limit: 0, remaining: 0 })
    expect(limiter.check('key', { cost: 9, partial: true })).toMatchObject({ allowed: false, reason: 'never' })
    expect(limiter.reserve('key')).toMatchObject({ allowed: false, reason: 'never' })
    expect(await limiter.acquire('key')).toMatchObject({ allowed: false, reason: 'never' })
  })
})

describe('off', () => {
  it('does not limit at all', async () => {
    const limiter = create({ limit: 'off', window: '1m' })
    const unlimited = { allowed: true, limit: Number.POSITIVE_INFINITY, remaining: Number.POSITIVE_INFINITY }
    expect(limiter.tryAcquire('key')).toBe(true)
    expect(limiter.check('key', { cost: 1e9 })).toMatchObject({ ...unlimited, cost: 1e9 })
    expect(limiter.peek('key')).toMatchObject({ ...unlimited, cost: 0 })
    expect(limiter.checkAll([{ key: 'a' }, { key: 'b' }])).toMatchObject(unlimited)
    expect(await limiter.acquire('key')).toMatchObject(unlimited)
    expect(limiter.refund(limiter.check('key'))).toEqual({ outcome: 'settled', corrected: 0 })
    const reservation = limiter.reserve('key', { cost: 5 })
    if (!reservation.allowed) throw new Error('denied')
    expect(reservation.decision).toMatchObject({ ...unlimited, cost: 5 })
    expect(reservation.renew()).toEqual({ outcome: 'settled', corrected: 0 })
    expect(reservation.settle(9)).toEqual({ outcome: 'settled', corrected: 0 })
  })
})

describe('close', () => {
  it('closes the store that the limiter made, and not one that it was given', async () => {
    const store = memoryStore({ clock: new FakeClock() })
    const [own, given] = [create(rule), createLimiter({ ...rule, store })]
    await own.close()
    await own.close()
    await given.close()
    expect(misuse(() => own.tryAcquire('key')).code).toBe('SLUICE_CLOSED')
    const error = misuse(() => given.tryAcquire('key'))
    expect(error.message).toBe('SLUICE_CLOSED: the limiter "default" is closed. Create a new one.')
    expect(createLimiter({ ...rule, store }).tryAcquire('key')).toBe(true)
  })

  it('rejects every method afterwards', async () => {
    for (const limits of [rule, { limit: 'off', window: '1m' } as const]) {
      const limiter = createLimiter({ ...limits, store: memoryStore({ clock: new FakeClock() }) })
      const decision = limiter.check('key')
      await limiter.close()
      const uses = [
        () => limiter.tryAcquire('key'),
        () => limiter.check('key'),
        () => limiter.peek('key'),
        () => limiter.checkAll([{ key: 'key' }]),
        () => limiter.reserve('key'),
        () => limiter.refund(decision),
        () => limiter.reset('key'),
        () => limiter.block('key', '1s'),
        () => limiter.unblock('key'),
      ]
      for (const use of uses) expect(misuse(use).code).toBe('SLUICE_CLOSED')
      await expect(limiter.acquire('key')).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
    }
  })

  it('closes a set and all its limiters', async () => {
    const store = memoryStore({ clock: new FakeClock() })
    const set = createLimiter({ rules: { a: rule, b: rule }, store })
    const decision = set.checkAll([{ rule: 'a', key: 'key' }])
    await set.close()
    await set.close()
    const uses = [
      () => set.checkAll([{ rule: 'a', key: 'key' }]),
      () => set.peekAll([{ rule: 'a', key: 'key' }]),
      () => set.refund(decision),
      () => set.limiter('b').tryAcquire('key'),
    ]
    for (const use of uses) expect(misuse(use).code).toBe('SLUICE_CLOSED')
  })

  it('happens at the end of `await using`', async () => {
    const store = memoryStore({ clock: new FakeClock() })
    let kept: Limiter<'sync'>
    {
      await using limiter = createLimiter({ ...rule, store })
      await using set = createLimiter({ rules: { other: rule }, store })
      expect(set.limiter('other').tryAcquire('key')).toBe(true)
      kept = limiter
    }
    expect(misuse(() => kept.tryAcquire('key')).code).toBe('SLUICE_CLOSED')
  })
})

describe('a set of rules', () => {
  it('knows its rules and no others', () => {
    const set = createLimiter({ rules: { a: rule } })
    for (const name of ['b', 'toString', '__proto__']) {
      const error = misuse(() => set.limiter(name as 'a'))
      expect(error).toMatchObject({ code: 'SLUICE_UNKNOWN_RULE', received: name, expected: 'one of a' })
      expect(misuse(() => set.checkAll([{ rule: name as 'a', key: 'key' }])).code).toBe('SLUICE_UNKNOWN_RULE')
    }
  })

  it('allows a check without keys, and one whose rules are all off', () => {
    const set = createLimiter({ rules: { a: { limit: 'off', window: '1s' } } })
    expect(set.checkAll([])).toMatchObject({ allowed: true, rule: 'none' })
    expect(set.checkAll([{ rule: 'a', key: 'key' }])).toMatchObject({ allowed: true, rule: 'a' })
  })

  it('holds slots of several rules under one name', () => {
    const slots = { algorithm: 'concurrency', limit: 1, lease: '1m' } as const
    const set = createLimiter({ rules: { a: slots, b: slots }, clock: new FakeClock() })
    const both = [
      { rule: 'a' as const, key: 'key' },
      { rule: 'b' as const, key: 'key' },
    ]
    const decision = set.checkAll(both)
    expect([decision.allowed, set.checkAll(both).allowed]).toEqual([true, false])
    expect(set.refund(decision)).toEqual({ outcome: 'settled', corrected: -2 })
    expect(set.checkAll(both).allowed).toBe(true)
  })
})

describe('on a store that answers by promise', () => {
  it('decisions of one moment do not get into each other’s way', async () => {
    const limiter = createLimiter({ ...rule, store: deferredStore(memoryStore({ clock: new FakeClock() })) })
    const [a, b, c] = await Promise.all([
      limiter.check('a', { cost: 3 }),
      limiter.check('b', { cost: 2 }),
      limiter.peek('c'),
    ])
    expect([a.remaining, b.remaining, c.remaining]).toEqual([0, 1, 3])
    expect(await limiter.refund(a)).toEqual({ outcome: 'settled', corrected: -3 })
    expect(await limiter.refund(b, 1)).toEqual({ outcome: 'settled', corrected: -1 })
    expect(await limiter.tryAcquire('a')).toBe(true)
  })

  it('two settlements at once are one', async () => {
    const limiter = createLimiter({ ...rule, store: deferredStore(memoryStore({ clock: new FakeClock() })) })
    const reservation = await limiter.reserve('key', { cost: 3 })
    if (!reservation.allowed) throw new Error('denied')
    const both = await Promise.all([reservation.settle(2), reservation.release()])
    expect(both).toEqual([
      { outcome: 'settled', corrected: -1 },
      { outcome: 'settled', corrected: -1 },
    ])
    expect((await limiter.peek('key')).remaining).toBe(1)
  })
})
