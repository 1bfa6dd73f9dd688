import { describe, expect, it } from 'vitest'
import { MemoryRollups } from '../observability.test.support.ts'
import { planHistory, readHistory } from './history.ts'
import type { RollupRow, RollupStore } from './rollup-recorder.ts'
import { HOUR_MS, MINUTE_MS } from './rollup-recorder.ts'

describe('history', () => {
  const NOW = Date.UTC(2030, 0, 10)
  const DAY_MS = 24 * HOUR_MS

  it.each([
    [
      'the last hour when nothing is said',
      {},
      { fromMs: NOW - HOUR_MS, toMs: NOW, stepMs: MINUTE_MS, keptMs: MINUTE_MS },
    ],
    ['a day in about a hundred points', { from: NOW - DAY_MS }, { stepMs: 15 * MINUTE_MS, keptMs: MINUTE_MS }],
    ['the requested length', { from: NOW - DAY_MS, stepMs: 300_000 }, { stepMs: 300_000, keptMs: MINUTE_MS }],
    ['the next longer one that is kept', { stepMs: 1000 }, { stepMs: MINUTE_MS, keptMs: MINUTE_MS }],
    ['the next longer length', { from: NOW - DAY_MS, stepMs: 400_000 }, { stepMs: 600_000 }],
    ['no more than a thousand points', { from: NOW - 2 * DAY_MS, stepMs: 60_000 }, { stepMs: 5 * MINUTE_MS }],
    [
      'hours for what is older than two days',
      { from: NOW - 3 * DAY_MS, to: NOW - 2 * DAY_MS },
      { stepMs: HOUR_MS, keptMs: HOUR_MS },
    ],
    ['days for a quarter', { from: NOW - 90 * DAY_MS, stepMs: DAY_MS }, { stepMs: DAY_MS, keptMs: HOUR_MS }],
    ['no more than is kept', { from: 0, to: NOW }, { fromMs: NOW - 90 * DAY_MS, stepMs: DAY_MS, keptMs: HOUR_MS }],
    ['days at most', { from: 0, stepMs: 99 * DAY_MS }, { stepMs: DAY_MS }],
    ['the beginning of a span', { from: NOW - 90_500, to: NOW - 1 }, { fromMs: NOW - 120_000, toMs: NOW - 1 }],
    ['nothing after now', { from: NOW - HOUR_MS, to: NOW + DAY_MS }, { toMs: NOW }],
    ['nothing when it ends before it begins', { from: NOW, to: NOW - HOUR_MS }, { fromMs: NOW, toMs: NOW - HOUR_MS }],
  ])('plans %s', (_, parameters, expected) => {
    expect(planHistory(parameters, NOW)).toMatchObject(expected)
  })

  it('tells what several processes kept, in spans of the length asked for', async () => {
    const store = new MemoryRollups()
    const body = (allowed: number, denied: number): string =>
      JSON.stringify({
        checks: [
          { resource: '/data', dimension: 'user', result: 'allowed', count: allowed },
          { resource: '/data', dimension: 'ip', result: 'denied', count: denied },
        ],
        regions: [{ region: 'EU', result: 'allowed', count: allowed }],
        storeErrors: 1,
      })
    const at = NOW - HOUR_MS
    await store.put([
      { stepMs: MINUTE_MS, at, source: 'a', body: body(10, 1) },
      { stepMs: MINUTE_MS, at, source: 'b', body: body(20, 2) },
      { stepMs: MINUTE_MS, at: at + MINUTE_MS, source: 'a', body: body(5, 0) },
      { stepMs: MINUTE_MS, at: at + 5 * MINUTE_MS, source: 'a', body: body(7, 7) },
      { stepMs: MINUTE_MS, at: at - MINUTE_MS, source: 'a', body: body(99, 99) },
    ])
    const plan = planHistory({ from: at, to: NOW, stepMs: 5 * MINUTE_MS }, NOW)
    expect(await readHistory(store, plan)).toEqual({
      stepMs: 5 * MINUTE_MS,
      points: [
        {
          at,
          spanMs: 5 * MINUTE_MS,
          checks: 38,
          denials: 3,
          withoutStore: 0,
          storeErrors: 3,
          storeP50Ms: null,
          storeP99Ms: null,
          resources: [{ name: '/data', checks: 38, denials: 3 }],
          regions: [{ name: 'EU', checks: 35, denials: 0 }],
        },
        expect.objectContaining({ at: at + 5 * MINUTE_MS, checks: 14, denials: 7 }),
      ],
    })
  })

  it('reads a long time in pieces, and each row once', async () => {
    const spans: [number, number][] = []
    const inner = new MemoryRollups()
    const store: RollupStore = {
      put: (rows) => inner.put(rows),
      forget: (span) => inner.forget(span),
      list: (span) => {
        spans.push([span.fromMs, span.toMs])
        return inner.list(span)
      },
    }
    const kept = Array.from({ length: 300 }, (_, minute) => ({
      stepMs: MINUTE_MS,
      at: NOW - (minute + 1) * MINUTE_MS,
      source: 'a',
      body: JSON.stringify({ checks: [{ resource: '/a', dimension: 'user', result: 'allowed', count: 1 }] }),
    }))
    await store.put(kept)
    const plan = planHistory({ from: NOW - 300 * MINUTE_MS, stepMs: MINUTE_MS }, NOW)
    const { points } = await readHistory(store, plan)
    expect(points).toHaveLength(300)
    expect(points.reduce((sum, { checks }) => sum + checks, 0)).toBe(300)
    expect(spans).toHaveLength(5)
    expect(spans.every(([from, to]) => to - from <= HOUR_MS)).toBe(true)
  })

  it('looks for all that is ever kept in few pieces', async () => {
    let pieces = 0
    class Watched extends MemoryRollups {
      override list(span: Parameters<RollupStore['list']>[0]): Promise<readonly RollupRow[]> {
        pieces++
        return super.list(span)
      }
    }
    await readHistory(new Watched(), planHistory({ from: 0, stepMs: 1000 }, NOW))
    await readHistory(new Watched(), planHistory({ from: NOW - 2 * DAY_MS, stepMs: 1000 }, NOW))
    expect(pieces).toBe(36 + 48)
  })
})
