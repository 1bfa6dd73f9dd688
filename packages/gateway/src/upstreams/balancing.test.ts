import { describe, expect, it } from 'vitest'
import { attemptOn, countsOf, FAILURE, fakeUpstream, instancesOf, OK, urlOf } from './upstreams.test.support.ts'

const KEYS = 10_000
const keyOf = (index: number): string => `user-${index}`

describe('round robin', () => {
  it('gives every instance its exact share of one round, without runs of the heaviest', () => {
    const { upstream } = fakeUpstream({ instances: instancesOf(3, [5, 1, 1]) })
    const order = Array.from({ length: 7 }, () => attemptOn(upstream).instance)
    expect(order).toEqual([1, 1, 2, 1, 3, 1, 1].map(urlOf))
    expect(countsOf(upstream, 700)).toEqual({ [urlOf(1)]: 500, [urlOf(2)]: 100, [urlOf(3)]: 100 })
  })

  it('avoids instances that were tried, while there is another', () => {
    const { upstream } = fakeUpstream({ instances: instancesOf(3) })
    const tried = new Set([urlOf(1), urlOf(3)])
    for (let round = 0; round < 10; round++) expect(attemptOn(upstream, {}, tried).instance).toBe(urlOf(2))
    tried.add(urlOf(2))
    const chosen = new Set(Array.from({ length: 30 }, () => attemptOn(upstream, {}, tried).instance))
    expect(chosen.size).toBe(3)
  })
})

describe('least connections', () => {
  it('takes the instance with the fewest requests in flight for its weight', () => {
    const { upstream } = fakeUpstream({ instances: instancesOf(3, [2, 1, 1]), balance: 'least-connections' })
    const attempts = Array.from({ length: 8 }, () => attemptOn(upstream))
    expect(upstream.stats().instances.map(({ inFlight }) => inFlight)).toEqual([4, 2, 2])
    for (const attempt of attempts) if (attempt.instance === urlOf(3)) attempt.finish(OK)
    expect([attemptOn(upstream).instance, attemptOn(upstream).instance]).toEqual([urlOf(3), urlOf(3)])
  })

  it('lets equal instances take turns', () => {
    const { upstream } = fakeUpstream({ instances: instancesOf(3), balance: 'least-connections' })
    expect(countsOf(upstream, 30)).toEqual({ [urlOf(1)]: 10, [urlOf(2)]: 10, [urlOf(3)]: 10 })
  })
})

describe('consistent hashing', () => {
  const ownersOf = (count: number, weights?: readonly number[]): string[] => {
    const { upstream } = fakeUpstream({ instances: instancesOf(count, weights), balance: 'hash', hashBy: 'user' })
    return Array.from({ length: KEYS }, (_, index) => attemptOn(upstream, { hashKey: keyOf(index) }).instance)
  }

  it('sends a key to the same instance, by weight', () => {
    const owners = ownersOf(3, [2, 1, 1])
    expect(ownersOf(3, [2, 1, 1])).toEqual(owners)
    const share = owners.filter((owner) => owner === urlOf(1)).length / KEYS
    expect(share).toBeGreaterThan(0.42)
    expect(share).toBeLessThan(0.58)
  })

  it('moves only keys to a new instance, and only keys of a removed one', () => {
    const before = ownersOf(4)
    const after = ownersOf(5)
    const moved = before.flatMap((owner, index) => (after[index] === owner ? [] : [after[index]]))
    expect(new Set(moved)).toEqual(new Set([urlOf(5)]))
    // All keys of the new instance came from others: exactly its share has moved.
    expect(moved).toHaveLength(after.filter((owner) => owner === urlOf(5)).length)
    expect(moved.length / KEYS).toBeGreaterThan(0.85 / 5)
    expect(moved.length / KEYS).toBeLessThan(1.15 / 5)
  })

  it('sends only the keys of a failed instance elsewhere, and back when it has recovered', async () => {
    const { upstream, timers } = fakeUpstream({
      instances: instancesOf(4),
      balance: 'hash',
      hashBy: 'user',
      health: { passive: { failures: 1, pause: 1000 } },
    })
    const owners = (): string[] =>
      Array.from({ length: 1000 }, (_, index) => {
        const attempt = attemptOn(upstream, { hashKey: keyOf(index) })
        attempt.finish(OK)
        return attempt.instance
      })
    const before = owners()
    const failing = before.indexOf(urlOf(2))
    attemptOn(upstream, { hashKey: keyOf(failing) }).finish(FAILURE)
    const during = owners()
    expect(during.filter((owner) => owner === urlOf(2))).toEqual([])
    expect(during.filter((owner, index) => owner !== before[index] && before[index] !== urlOf(2))).toEqual([])
    await timers.advance(1250)
    expect(owners()).toEqual(before)
  })

  it('takes turns without a value to hash', () => {
    const { upstream } = fakeUpstream({ instances: instancesOf(2), balance: 'hash', hashBy: 'header:x-cart' })
    expect(upstream.hashBy).toBe('header:x-cart')
    expect(countsOf(upstream, 10)).toEqual({ [urlOf(1)]: 5, [urlOf(2)]: 5 })
  })
})

describe('slow start', () => {
  it('gives an instance that recovered a tenth of its weight at first, and all of it at the end', async () => {
    const { upstream, timers } = fakeUpstream({
      instances: instancesOf(2),
      slowStart: '10s',
      health: { passive: { failures: 1, pause: 1000 } },
    })
    for (let failed = false; !failed; ) {
      const attempt = attemptOn(upstream)
      failed = attempt.instance === urlOf(2)
      attempt.finish(failed ? FAILURE : OK)
    }
    expect(countsOf(upstream, 20)).toEqual({ [urlOf(1)]: 20 })
    await timers.advance(1250)
    // The probe closes the breaker; from then on it has a tenth.
    countsOf(upstream, 2)
    expect(countsOf(upstream, 110)).toEqual({ [urlOf(1)]: 100, [urlOf(2)]: 10 })
    await timers.advance(5000)
    expect(upstream.stats().instances.map(({ weight }) => weight)).toEqual([1, 0.55])
    await timers.advance(5000)
    expect(countsOf(upstream, 100)).toEqual({ [urlOf(1)]: 50, [urlOf(2)]: 50 })
  })

  it('brings keys back to a recovered instance little by little, and none to another', async () => {
    const { upstream, timers } = fakeUpstream({
      instances: instancesOf(3),
      balance: 'hash',
      hashBy: 'user',
      slowStart: '10s',
      health: { passive: { failures: 1, pause: 1000 } },
    })
    const owners = (): string[] =>
      Array.from({ length: 3000 }, (_, index) => {
        const attempt = attemptOn(upstream, { hashKey: keyOf(index) })
        attempt.finish(OK)
        return attempt.instance
      })
    const before = owners()
    const mine = before.flatMap((owner, index) => (owner === urlOf(3) ? [index] : []))
    attemptOn(upstream, { hashKey: keyOf(mine[0]!) }).finish(FAILURE)
    await timers.advance(1250)
    owners()
    const backAt: number[] = []
    for (const share of [0.1, 0.55, 1]) {
      const now = owners()
      expect(now.filter((owner, index) => owner !== before[index] && before[index] !== urlOf(3))).toEqual([])
      const back = mine.filter((index) => now[index] === urlOf(3)).length
      expect(Math.abs(back / mine.length - share)).toBeLessThan(0.05)
      backAt.push(back)
      await timers.advance(5000)
    }
    expect(backAt).toEqual([...backAt].sort((one, other) => one - other))
    expect(backAt.at(-1)).toBe(mine.length)
  })
})
