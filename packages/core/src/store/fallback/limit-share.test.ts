import { FakeClock, rules } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { algorithmOf, step } from '../../algorithms/algorithm.ts'
import { ALGORITHMS } from '../../algorithms/all-algorithms.ts'
import { createLimiter } from '../../limiter/create-any-limiter.ts'
import type { Limit } from '../../rule/limit.ts'
import type { Rule } from '../../rule/rule.ts'
import { compileRule } from '../../rule-kinds.ts'
import { shareOf } from './limit-share.ts'

const names = Object.keys(ALGORITHMS) as Limit['algorithm'][]

function limitOf(rule: Rule): Limit {
  return compileRule('rule', rule)[0]!
}

describe('the share of a limit', () => {
  it('of one node is the limit itself', () => {
    const limit = limitOf({ limit: 100, window: '1m' })
    expect(shareOf(limit, 1)).toBe(limit)
  })

  it('is made once for each number of nodes', () => {
    const limit = limitOf({ limit: 100, window: '1m' })
    expect(shareOf(limit, 3)).toBe(shareOf(limit, 3))
    expect(shareOf(limit, 4)).not.toBe(shareOf(limit, 3))
    expect(shareOf(limit, 4)).toMatchObject({ limit: 25, capacity: 25 })
  })

  it.each<[string, Rule, number, object]>([
    [
      'token bucket',
      { algorithm: 'token-bucket', capacity: 10, refillPerSecond: 6 },
      4,
      { limit: 3, capacity: 3, rate: { units: 3, micros: 2 } },
    ],
    [
      'gcra with a burst',
      { limit: 100, window: '1s', burst: 5 },
      10,
      { limit: 10, capacity: 1, rate: { units: 10, micros: 1 } },
    ],
    ['gcra that denies all', { limit: 0, window: '1s' }, 10, { limit: 0, capacity: 0 }],
    [
      'queue',
      { algorithm: 'leaky-bucket-queue', capacity: 4, ratePerSecond: 1 },
      3,
      { capacity: 2, rate: { units: 1, micros: 3 } },
    ],
    [
      'window',
      { algorithm: 'fixed-window', limit: 7, window: '1m' },
      2,
      { limit: 4, capacity: 4, window: 60_000_000, stateSize: 2 },
    ],
    [
      'window with rollover',
      { algorithm: 'fixed-window', limit: 7, window: '1m', rollover: true },
      2,
      { limit: 4, capacity: 7, rolloverMax: 3, stateSize: 3 },
    ],
    [
      'window that has nothing to carry over',
      { algorithm: 'fixed-window', limit: 1, window: '1m', rollover: true },
      2,
      { limit: 1, capacity: 1, rolloverMax: 0, stateSize: 2 },
    ],
    [
      'sliding counter',
      { algorithm: 'sliding-window-counter', limit: 9, window: '1s' },
      2,
      { limit: 5, windowMicros: 1_000_000 },
    ],
    ['log', { algorithm: 'sliding-window-log', limit: 9, window: '1s' }, 2, { limit: 5, stateSize: 10 }],
    [
      'segments',
      { algorithm: 'sliding-window-log', limit: 9, window: '1s', segments: 4 },
      2,
      { limit: 5, segments: 4, stateSize: 6 },
    ],
    [
      'hybrid',
      { algorithm: 'hybrid', limit: 3, window: '1s', burst: { capacity: 3, refillPerSecond: 1 } },
      2,
      {
        limit: 3,
        capacity: 3,
        base: expect.objectContaining({ limit: 2 }),
        burst: expect.objectContaining({ capacity: 1, rate: { units: 1, micros: 2 } }),
      },
    ],
    [
      'slots',
      { algorithm: 'concurrency', limit: 4, lease: '1s' },
      3,
      { limit: 2, capacity: 2, leaseMicros: 1_000_000, stateSize: 6 },
    ],
  ])('%s', (_name, rule, nodes, expected) => {
    const limit = limitOf(rule)
    const { id, space0, space1, fixedSize } = limit
    const share = shareOf(limit, nodes)
    expect(share).toMatchObject({ ...expected, id, rule: 'rule', space0, space1, fixedSize })
    expect(Object.isFrozen(share)).toBe(true)
  })

  it('keeps the failure mode of its rule', () => {
    expect(shareOf(limitOf({ limit: 5, window: '1s', failureMode: 'local' }), 2).failureMode).toBe('local')
  })

  it.each([0, -1, 1.5, Number.NaN])('of %d nodes cannot be', (nodes) => {
    expect(() => shareOf(limitOf({ limit: 5, window: '1s' }), nodes)).toThrow(
      expect.objectContaining({ code: 'SLUICE_INVALID_OPTION', received: nodes }),
    )
  })

  it('lets all nodes together take at most the limit and one unit less than there are nodes, at one instant', () => {
    fc.assert(
      fc.property(fc.constantFrom(...names).chain(rules), fc.integer({ min: 1, max: 50 }), (rule, nodes) => {
        const now = new FakeClock().nowMicros()
        for (const limit of compileRule('rule', rule)) {
          const share = shareOf(limit, nodes)
          expect(share.capacity * nodes).toBeLessThanOrEqual(limit.capacity + nodes - 1)
          expect(share.capacity * nodes).toBeGreaterThanOrEqual(limit.capacity)
          const algorithm = algorithmOf(share)
          const free = step(algorithm, [], share, { now, cost: 0 }).verdict
          const taken = step(algorithm, [], share, { now, cost: Math.max(1, free.remaining) })
          if (free.remaining > 0) expect(taken.verdict.ruling).toBe('allowed')
          expect(step(algorithm, taken.state, share, { now, cost: 1, holder: 2 }).verdict.ruling).not.toBe('allowed')
          expect(free.remaining * nodes).toBeLessThanOrEqual(limit.capacity + nodes - 1)
        }
      }),
    )
  })

  it('refills together no faster than the limit', () => {
    const clock = new FakeClock()
    const limiters = [0, 1, 2].map((node) => {
      const share = shareOf(limitOf({ algorithm: 'token-bucket', capacity: 10, refillPerSecond: 6 }), 3)
      if (!('rate' in share)) throw new Error('a bucket has a rate')
      const refillPerSecond = share.rate.units / share.rate.micros
      return createLimiter({
        algorithm: 'token-bucket',
        capacity: share.capacity,
        refillPerSecond,
        clock,
        name: `n${node}`,
      })
    })
    let admitted = 0
    for (let ms = 0; ms <= 60_000; ms += 100) {
      for (const limiter of limiters) while (limiter.tryAcquire('key')) admitted++
      clock.advance(100)
    }
    // 12 at once, then 6 a second for a minute.
    expect(admitted).toBe(12 + 60 * 6)
  })
})
