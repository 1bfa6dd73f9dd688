import { FakeClock, seededRandom } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { createLimiter } from '../limiter/create-any-limiter.ts'
import type { Limiter, LimiterSet } from '../limiter/limiter.ts'
import type { Rule } from '../rule/rule.ts'
import { type MemoryStore, memoryStore } from './memory/memory-store.ts'

const MAX_KEYS = 64

interface Bounded {
  readonly clock: FakeClock
  readonly store: MemoryStore
  readonly limiter: Limiter<'sync'>
}

function bounded(rule: Rule, maxKeys = MAX_KEYS): Bounded {
  const clock = new FakeClock()
  const store = memoryStore({ clock, maxKeys, random: seededRandom(3) })
  return { clock, store, limiter: createLimiter({ ...rule, store, clock }) }
}

/** Rules of every kind of table: two values, four values, lists. Each gives 10 units an hour. */
const KINDS: Readonly<Record<string, Rule>> = {
  'two values': { algorithm: 'fixed-window', limit: 10, window: '1h' },
  'four values': { algorithm: 'hybrid', limit: 5, window: '1h', burst: { capacity: 5, refillPerSecond: 0.001 } },
  lists: { algorithm: 'sliding-window-log', limit: 10, window: '1h' },
}

describe.each(Object.entries(KINDS))('a store full of keys of %s', (_kind, rule) => {
  it('holds as many as it may, and counts who had to go', () => {
    const { store, limiter } = bounded(rule)
    for (let index = 0; index < 10_000; index++) expect(limiter.tryAcquire(`key-${index}`)).toBe(true)
    expect(store.stats()).toEqual({ keys: MAX_KEYS, evictions: 10_000 - MAX_KEYS, overflowed: 0 })
  })

  it('drops expired keys first: no key in use is dropped for a new one', () => {
    const { store, limiter, clock } = bounded(rule)
    for (let index = 0; index < MAX_KEYS / 2; index++) limiter.check(`old-${index}`, { cost: 3 })
    // An hour, and the two seconds to which the time of a state is rounded.
    clock.advance(3_602_001)
    const live = Array.from({ length: MAX_KEYS / 2 }, (_, index) => `live-${index}`)
    for (const key of live) limiter.check(key, { cost: 3 })
    for (let index = 0; index < MAX_KEYS / 2; index++) expect(limiter.tryAcquire(`new-${index}`)).toBe(true)
    expect(store.stats()).toMatchObject({ keys: MAX_KEYS, evictions: 0 })
    expect(live.map((key) => limiter.peek(key).remaining)).toEqual(live.map(() => 7))
  })

  it('then drops those that have used least', () => {
    const { store, limiter } = bounded(rule)
    const half = MAX_KEYS / 2
    for (let index = 0; index < half; index++) limiter.check(`heavy-${index}`, { cost: 9 })
    for (let index = 0; index < half; index++) limiter.check(`light-${index}`, { cost: 1 })
    for (let index = 0; index < 500; index++) limiter.check(`new-${index}`, { cost: 1 })
    expect(store.stats()).toMatchObject({ keys: MAX_KEYS, evictions: 500, overflowed: 0 })
    const left = Array.from({ length: half }, (_, index) => limiter.peek(`heavy-${index}`).remaining)
    expect(left).toEqual(left.map(() => 1))
  })

  it('never drops a key that is used up', () => {
    const { store, limiter } = bounded(rule)
    const used = Array.from({ length: MAX_KEYS - 8 }, (_, index) => `used-${index}`)
    for (const key of used) limiter.check(key, { cost: 10 })
    for (let index = 0; index < 20_000; index++) limiter.tryAcquire(`attacker-${index}`)
    expect(used.filter((key) => limiter.tryAcquire(key))).toEqual([])
    expect(store.stats().keys).toBe(MAX_KEYS)
  })

  it('counts keys without room together, so that they cannot have more than one limit', () => {
    const { store, limiter, clock } = bounded(rule)
    for (let index = 0; index < MAX_KEYS; index++) limiter.check(`used-${index}`, { cost: 10 })
    const admitted = Array.from({ length: 100 }, (_, index) => limiter.tryAcquire(`homeless-${index}`))
    expect(admitted.filter(Boolean)).toHaveLength(10)
    expect(admitted.slice(0, 10)).toEqual(admitted.slice(0, 10).map(() => true))
    expect(store.stats()).toEqual({ keys: MAX_KEYS, evictions: 0, overflowed: 100 })
    // When the others have expired, there is room again.
    clock.advance(24 * 3_600_000)
    expect(limiter.tryAcquire('homeless-0')).toBe(true)
    expect(store.stats().overflowed).toBe(100)
  })

  it('keeps blocks whatever comes', () => {
    const { limiter } = bounded(rule)
    limiter.block('blocked', '1h')
    for (let index = 0; index < 20_000; index++) limiter.tryAcquire(`attacker-${index}`)
    expect(limiter.check('blocked')).toMatchObject({ allowed: false, reason: 'blocked' })
  })
})

describe('several keys at once without room', () => {
  function full(): { store: MemoryStore; set: LimiterSet<'a' | 'b', 'sync'> } {
    const clock = new FakeClock()
    const store = memoryStore({ clock, maxKeys: MAX_KEYS, random: seededRandom(3) })
    const rules = {
      a: { algorithm: 'fixed-window', limit: 10, window: '1h' },
      b: { algorithm: 'sliding-window-log', limit: 10, window: '1h' },
    } as const
    const set = createLimiter({ rules, store, clock })
    for (let index = 0; index < MAX_KEYS; index++) set.limiter('a').check(`used-${index}`, { cost: 10 })
    return { store, set }
  }

  it('are all charged to the overflow, or none', () => {
    const { set } = full()
    const two = (first: number) => [
      { rule: 'a' as const, key: `x-${first}`, cost: 2 },
      { rule: 'a' as const, key: `y-${first}`, cost: 2 },
    ]
    expect(set.checkAll(two(0)).allowed).toBe(true)
    expect(set.checkAll(two(1)).allowed).toBe(true)
    // 8 of 10 are used: two more pairs do not fit, one single does.
    expect(set.checkAll(two(2)).allowed).toBe(false)
    expect(set.limiter('a').check('z', { cost: 2 }).allowed).toBe(true)
    expect(set.limiter('a').tryAcquire('w')).toBe(false)
  })

  it('leave those that have room as they were when the overflow denies', () => {
    const { set } = full()
    expect(set.limiter('a').check('homeless', { cost: 10 }).allowed).toBe(true)
    set.limiter('b').check('known', { cost: 3 })
    const joint = [
      { rule: 'b' as const, key: 'known' },
      { rule: 'b' as const, key: 'new' },
      { rule: 'a' as const, key: 'another' },
    ]
    expect(set.checkAll(joint).allowed).toBe(false)
    expect(set.limiter('b').peek('known').remaining).toBe(7)
    expect(set.limiter('b').peek('new').remaining).toBe(10)
  })

  it('take what is left when a part is enough', () => {
    const { set } = full()
    expect(set.limiter('a').check('x', { cost: 8 }).allowed).toBe(true)
    expect(set.limiter('a').check('y', { cost: 5, partial: true })).toMatchObject({ allowed: true, cost: 2 })
    expect(set.limiter('a').check('z', { cost: 5, partial: true })).toMatchObject({ allowed: false, cost: 0 })
  })
})

describe('a flood of five million keys', () => {
  it('takes no more memory than it may, and frees no denied key', () => {
    const maxKeys = 100_000
    const { store, limiter } = bounded({ limit: 5, window: '1h' }, maxKeys)
    limiter.check('exhausted', { cost: 5 })
    limiter.block('blocked', '1h')
    let flat = 0
    for (let index = 0; index < 5_000_000; index++) {
      limiter.tryAcquire(`attacker-${index}`)
      if (index === 1_000_000) flat = process.memoryUsage().arrayBuffers
      if (index % 500_000 === 0) {
        expect(limiter.tryAcquire('exhausted')).toBe(false)
        expect(limiter.check('blocked').reason).toBe('blocked')
        expect(store.stats().keys).toBeLessThanOrEqual(maxKeys)
      }
    }
    const { arrayBuffers, heapUsed } = process.memoryUsage()
    expect(arrayBuffers).toBe(flat)
    // Unreachable keys and decisions are still in here; five million would be hundreds of megabytes.
    expect(heapUsed).toBeLessThan(150_000_000)
    expect(store.stats()).toEqual({ keys: maxKeys, evictions: 5_000_001 - maxKeys, overflowed: 0 })
    expect(limiter.tryAcquire('exhausted')).toBe(false)
    expect(limiter.check('blocked').reason).toBe('blocked')
  })
})

describe('maxKeys', () => {
  it.each([0, 63, 64.5, -1, Number.NaN, 100_000_001, '100'])('cannot be %s', (maxKeys) => {
    const make = (): MemoryStore => memoryStore({ maxKeys: maxKeys as number })
    expect(make).toThrow(expect.objectContaining({ code: 'SLUICE_INVALID_OPTION', received: maxKeys }))
  })

  it.each([64, 65_535, 65_537, 100_000])('of %d is met exactly', (maxKeys) => {
    const { store, limiter } = bounded({ limit: 5, window: '1h' }, maxKeys)
    for (let index = 0; index < 1.5 * maxKeys; index++) limiter.tryAcquire(`key-${index}`)
    expect(store.stats().keys).toBe(maxKeys)
  })
})
