import type { RuleSet } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { planHistory, readHistory } from './history.ts'
import { createScene } from './observability.test.support.ts'
import { ReportDesk } from './report-desk.ts'
import { RollupRecorder } from './rollup-recorder.ts'
import type { RollupRow, RollupStore } from './rollup-store.ts'
import { HOUR_MS, MemoryRollups, MINUTE_MS } from './rollup-store.ts'
import type { TrafficTotals } from './traffic-totals.ts'

const RULES: RuleSet = { rules: [{ resource: '/data', dimension: 'user', limit: 5, window: '1s' }] }

const ALL = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER }

/** A place for history that may be away, and says how often it was asked to put. */
class Flaky implements RollupStore {
  readonly inner = new MemoryRollups()
  isAway = false
  puts = 0

  async put(rows: readonly RollupRow[]): Promise<void> {
    this.puts++
    if (this.isAway) throw new Error('the database is away')
    await this.inner.put(rows)
  }

  list(span: Parameters<RollupStore['list']>[0]): Promise<readonly RollupRow[]> {
    return this.inner.list(span)
  }

  forget(span: Parameters<RollupStore['forget']>[0]): Promise<void> {
    return this.inner.forget(span)
  }
}

function recorderScene() {
  const scene = createScene({ ruleSet: RULES })
  const { clock, sleep, log, instrument, engine } = scene
  const desk = new ReportDesk({ startedAt: 0, cpuMicros: () => 0, residentBytes: () => 0, firingAlerts: () => 0 })
  const report = () => Promise.resolve(desk.merge([{ ...instrument.report(), index: 0, name: 'only' }]))
  const store = new Flaky()
  const recorder = new RollupRecorder({ store, report, clock, sleep, log: log.logger, source: 'test-1' })
  const check = (times: number): void => {
    for (let call = 0; call < times; call++) engine.check({ resource: '/data', user: 'ann', region: 'EU' })
  }
  const kept = async (stepMs: number): Promise<readonly (readonly [number, number, number])[]> => {
    const rows = await store.list({ ...ALL, stepMs })
    return rows.map(({ at, body }) => {
      const { checks } = JSON.parse(body) as TrafficTotals
      const countOf = (result: string): number =>
        checks.filter((row) => row.result === result).reduce((sum, { count }) => sum + count, 0)
      return [at, countOf('allowed'), countOf('denied')]
    })
  }
  return { ...scene, store, recorder, check, kept, start: clock.nowMicros() / 1000 }
}

describe('RollupRecorder', () => {
  it('keeps each minute, and the hour as it grows', async () => {
    const { recorder, check, kept, timers, store, start } = recorderScene()
    check(3)
    recorder.start()
    recorder.start()
    await timers.advance(10_000)
    check(6)
    await timers.advance(50_000)
    expect(await kept(MINUTE_MS)).toEqual([[start, 5, 1]])
    expect(await kept(HOUR_MS)).toEqual([[start, 5, 1]])
    check(2)
    await timers.advance(60_000)
    // Nothing happens in the next two minutes, and nothing is written.
    const { puts } = store
    await timers.advance(120_000)
    expect(store.puts).toBe(puts)
    check(1)
    await timers.advance(60_000)
    expect(await kept(MINUTE_MS)).toEqual([
      [start, 5, 1],
      [start + MINUTE_MS, 2, 0],
      [start + 4 * MINUTE_MS, 1, 0],
    ])
    expect(await kept(HOUR_MS)).toEqual([[start, 8, 1]])
    await timers.advance(HOUR_MS)
    check(4)
    await recorder.close()
    expect(await kept(HOUR_MS)).toEqual([
      [start, 8, 1],
      [start + HOUR_MS, 4, 0],
    ])
    expect(timers.pending).toBe(0)
  })

  it('begins at the next full minute, and keeps the rest when it ends', async () => {
    const { recorder, check, kept, timers, clock, start } = recorderScene()
    clock.advance(45_000)
    recorder.start()
    await timers.advance(5000)
    check(1)
    await timers.advance(10_000)
    expect(await kept(MINUTE_MS)).toEqual([[start, 1, 0]])
    await timers.advance(20_000)
    check(2)
    await recorder.close()
    await recorder.close()
    expect(await kept(MINUTE_MS)).toEqual([
      [start, 1, 0],
      [start + MINUTE_MS, 2, 0],
    ])
  })

  it('keeps what a database that was away could not take, in one piece', async () => {
    const { recorder, check, kept, timers, store, log, start } = recorderScene()
    recorder.start()
    await timers.advance(0)
    store.isAway = true
    for (let minute = 0; minute < 3; minute++) {
      check(1)
      await timers.advance(60_000)
    }
    expect(await kept(MINUTE_MS)).toEqual([])
    expect(log.entries().map(({ message, rows }) => [message, rows])).toEqual([
      ['history could not be kept; it is tried again', 2],
      ['history could not be kept; it is tried again', 3],
      ['history could not be kept; it is tried again', 4],
    ])
    store.isAway = false
    await timers.advance(60_000)
    expect(await kept(MINUTE_MS)).toEqual([0, 1, 2].map((minute) => [start + minute * MINUTE_MS, 1, 0]))
    expect(await kept(HOUR_MS)).toEqual([[start, 3, 0]])
    await recorder.close()
  })

  it('holds a bounded number of rows for a database that stays away', async () => {
    const { recorder, check, kept, timers, store } = recorderScene()
    recorder.start()
    await timers.advance(0)
    store.isAway = true
    for (let minute = 0; minute < 400; minute++) {
      check(1)
      await timers.advance(60_000)
    }
    store.isAway = false
    await recorder.close()
    const [minutes, hours] = [await kept(MINUTE_MS), await kept(HOUR_MS)]
    expect(minutes.length + hours.length).toBe(150)
    // Of the 7 hours the last are there, each whole.
    expect(hours.at(-2)![1]).toBe(60)
  })

  it('puts a minute again whole when the clock is set back, and counts nothing twice', async () => {
    const { recorder, check, kept, timers, clock, start } = recorderScene()
    recorder.start()
    await timers.advance(0)
    check(1)
    await timers.advance(60_000)
    clock.setMicros(start * 1000 + 30_000_000)
    await timers.advance(0)
    check(2)
    await timers.advance(90_000)
    const sum = (await kept(MINUTE_MS)).reduce((total, [, allowed]) => total + allowed, 0)
    expect(sum).toBe(3)
    await recorder.close()
  })

  it('forgets minutes after two days and hours after ninety', async () => {
    const { recorder, check, kept, timers, clock, start } = recorderScene()
    recorder.start()
    await timers.advance(0)
    check(1)
    await timers.advance(60_000)
    clock.advance(2 * 24 * HOUR_MS)
    check(1)
    await timers.advance(60_000)
    expect((await kept(MINUTE_MS)).map(([at]) => at)).not.toContain(start)
    expect((await kept(HOUR_MS)).map(([at]) => at)).toContain(start)
    clock.advance(88 * 24 * HOUR_MS)
    check(1)
    await timers.advance(60_000)
    expect((await kept(HOUR_MS)).map(([at]) => at)).not.toContain(start)
    await recorder.close()
  })
})

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
    ['the length that is asked for', { from: NOW - DAY_MS, stepMs: 300_000 }, { stepMs: 300_000, keptMs: MINUTE_MS }],
    ['the next longer one that is kept', { stepMs: 1000 }, { stepMs: MINUTE_MS, keptMs: MINUTE_MS }],
    ['the next longer one that is told', { from: NOW - DAY_MS, stepMs: 400_000 }, { stepMs: 600_000 }],
    ['no more than a thousand points', { from: NOW - 2 * DAY_MS, stepMs: 60_000 }, { stepMs: 5 * MINUTE_MS }],
    [
      'hours for what is older than two days',
      { from: NOW - 3 * DAY_MS, to: NOW - 2 * DAY_MS },
      { stepMs: HOUR_MS, keptMs: HOUR_MS },
    ],
    ['days for a quarter', { from: NOW - 90 * DAY_MS, stepMs: DAY_MS }, { stepMs: DAY_MS, keptMs: HOUR_MS }],
    ['whole days for everything', { from: 0, to: NOW }, { stepMs: 183 * DAY_MS, keptMs: HOUR_MS }],
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
})
