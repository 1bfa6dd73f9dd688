import type { RuleSet } from '@sluice/core/policy'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createScene } from '../observability.test.support.ts'
import type { CheckCount, TrafficTotals } from './traffic-totals.ts'
import {
  addTraffic,
  boundedTraffic,
  hasTraffic,
  NO_TRAFFIC,
  trafficOf,
  trafficPoint,
  trafficSince,
} from './traffic-totals.ts'

const RULES: RuleSet = {
  rules: [{ resource: '/data', dimension: 'user', limit: 2, window: '1m' }],
  regions: { EU: 1 },
}

const SPAN = { at: 1000, spanMs: 1000 }

const rows = fc.array(
  fc.record({
    resource: fc.constantFrom('/a', '/b', '/c', 'other'),
    dimension: fc.constantFrom('user', 'ip'),
    result: fc.constantFrom('allowed', 'denied'),
    count: fc.integer({ min: 1, max: 9 }),
  }),
  { maxLength: 12 },
)

function totalsWith(checks: readonly CheckCount[]): TrafficTotals {
  return addTraffic(NO_TRAFFIC, { ...NO_TRAFFIC, checks })
}

function sumOf({ checks }: TrafficTotals): number {
  return checks.reduce((sum, { count }) => sum + count, 0)
}

describe('traffic', () => {
  it('is what came between two looks at the metrics', () => {
    const { engine, metrics } = createScene({ ruleSet: RULES })
    engine.check({ resource: '/data', user: 'ann', region: 'EU' })
    const before = trafficOf(metrics.snapshot())
    for (let call = 0; call < 3; call++) engine.check({ resource: '/data', user: 'ann', region: 'EU' })
    engine.check({ resource: '/elsewhere' })
    const came = trafficSince(trafficOf(metrics.snapshot()), before)
    expect(trafficPoint(came, SPAN)).toEqual({
      at: 1000,
      spanMs: 1000,
      checks: 4,
      denials: 2,
      withoutStore: 0,
      storeErrors: 0,
      // The stopwatch moves on by 1 ms at each look, and that is the last bucket below 1 ms and above 0.5.
      storeP50Ms: 0.75,
      storeP99Ms: 1,
      resources: [
        { name: '/data', checks: 3, denials: 2 },
        { name: 'other', checks: 1, denials: 0 },
      ],
      regions: [
        { name: 'EU', checks: 3, denials: 2 },
        { name: 'none', checks: 1, denials: 0 },
      ],
    })
    expect(hasTraffic(came)).toBe(true)
  })

  it('is nothing when nothing came', () => {
    const { engine, metrics } = createScene({ ruleSet: RULES })
    engine.check({ resource: '/data', user: 'ann' })
    const now = trafficOf(metrics.snapshot())
    const came = trafficSince(now, now)
    expect(hasTraffic(came)).toBe(false)
    expect(trafficPoint(came, SPAN)).toMatchObject({ checks: 0, denials: 0, storeP50Ms: null, resources: [] })
    expect(hasTraffic({ ...NO_TRAFFIC, storeErrors: 1 })).toBe(true)
    expect(hasTraffic({ ...NO_TRAFFIC, withoutStore: 1 })).toBe(true)
  })

  it('takes the latency of a remote store from its own calls', () => {
    const { instrument, metrics } = createScene({ ruleSet: RULES })
    instrument.observeStore({ type: 'asked', micros: 3000, outcome: 'answered' })
    const { families } = metrics.snapshot()
    const remote = families.map((family) =>
      family.name === 'ratelimit_store_info' ? { ...family, samples: [] } : family,
    )
    expect(trafficPoint(trafficOf({ families: remote as never }), SPAN)).toMatchObject({ storeP50Ms: 5 })
    expect(trafficPoint(trafficOf({ families }), SPAN)).toMatchObject({ storeP50Ms: null })
  })

  it('adds up to what it was taken apart from (property)', () => {
    fc.assert(
      fc.property(rows, rows, (first, second) => {
        const before = totalsWith(first)
        const now = addTraffic(before, totalsWith(second))
        expect(trafficSince(now, before)).toEqual({ ...NO_TRAFFIC, checks: expect.anything() })
        const came = trafficSince(now, before)
        expect(sumOf(came)).toBe(sumOf(totalsWith(second)))
        expect(trafficPoint(addTraffic(before, came), SPAN)).toEqual(trafficPoint(now, SPAN))
      }),
    )
  })

  it('loses no check when there are too many rows (property)', () => {
    fc.assert(
      fc.property(rows, fc.integer({ min: 1, max: 6 }), (checks, most) => {
        const totals = totalsWith(checks)
        const bounded = boundedTraffic(totals, most)
        expect(sumOf(bounded)).toBe(sumOf(totals))
        // One more for each result of the rest.
        expect(bounded.checks.length).toBeLessThanOrEqual(most + 2)
        const point = trafficPoint(bounded, SPAN)
        expect(point.denials).toBe(trafficPoint(totals, SPAN).denials)
      }),
    )
  })

  it('counts what is less than before as a new beginning', () => {
    const row = { resource: '/a', dimension: 'user', result: 'allowed' }
    const before = { ...NO_TRAFFIC, checks: [{ ...row, count: 10 }], storeErrors: 5, storeLatency: [4, 4] }
    const now = { ...NO_TRAFFIC, checks: [{ ...row, count: 3 }], storeErrors: 1, storeLatency: [1, 6] }
    expect(trafficSince(now, before)).toMatchObject({
      checks: [{ ...row, count: 3 }],
      storeErrors: 1,
      storeLatency: [1, 2],
    })
  })

  it('does not add latencies of other buckets', () => {
    const one = { ...NO_TRAFFIC, storeLatency: [1, 2] }
    expect(addTraffic(one, { ...NO_TRAFFIC, storeLatency: [1, 2, 3] }).storeLatency).toEqual([1, 2])
    expect(addTraffic(NO_TRAFFIC, one).storeLatency).toEqual([1, 2])
    expect(addTraffic(one, one).storeLatency).toEqual([2, 4])
    expect(trafficPoint(one, SPAN).storeP50Ms).toBeNull()
  })

  it('shows the twenty largest shares, and the rest as one', () => {
    const checks = Array.from({ length: 30 }, (_, number) => ({
      resource: number === 25 ? 'other' : `/r${number}`,
      dimension: 'user',
      result: number % 2 === 0 ? 'allowed' : 'denied',
      count: 100 + number,
    }))
    const { resources, checks: total } = trafficPoint({ ...NO_TRAFFIC, checks }, SPAN)
    expect(resources).toHaveLength(20)
    expect(resources[0]).toEqual({ name: '/r29', checks: 129, denials: 129 })
    expect(resources.at(-1)!.name).toBe('other')
    expect(resources.reduce((sum, share) => sum + share.checks, 0)).toBe(total)
    expect(resources.filter(({ name }) => name === 'other')).toHaveLength(1)
  })
})
