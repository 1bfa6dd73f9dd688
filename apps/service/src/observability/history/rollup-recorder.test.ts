import type { RuleSet } from '@sluice/core/policy'
import { describe, expect, it } from 'vitest'
import { MetricsAggregator } from '../metrics-aggregator.ts'
import { createScene, IDLE_PROCESS, MemoryRollups } from '../observability.test.support.ts'
import type { RollupRow, RollupStore } from './rollup-recorder.ts'
import { HOUR_MS, MINUTE_MS, RollupRecorder } from './rollup-recorder.ts'
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
    if (this.isAway) throw new Error('the database is unreachable')
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
  const aggregator = new MetricsAggregator(IDLE_PROCESS)
  const report = () => Promise.resolve(aggregator.merge([{ ...instrument.report(), index: 0, name: 'only' }]))
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
      ['could not store history; retrying', 2],
      ['could not store history; retrying', 3],
      ['could not store history; retrying', 4],
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
