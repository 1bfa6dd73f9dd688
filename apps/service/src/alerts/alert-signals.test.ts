import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { alertRules } from './alert-rule.ts'
import { latencyBoundsMs, mergeSignals, readingOf, SignalRecorder } from './alert-signals.ts'
import { START_MS } from './alerts.test.support.ts'

function recorderOf(options: Parameters<typeof alertRules>[0] = {}, lagMs = 0) {
  const time = { now: START_MS }
  const recorder = new SignalRecorder({
    rules: alertRules(options),
    nowMs: () => time.now,
    configLagMs: () => lagMs,
  })
  return { recorder, time }
}

describe('a recorder', () => {
  it('counts checks and calls of the store', () => {
    const { recorder } = recorderOf({}, 1234)
    for (const denied of [true, false, false]) recorder.recordCheck(denied)
    recorder.recordStoreCall(400, false)
    recorder.recordStoreCall(70_000_000, true)
    const { checks, storeCalls, storeLatency, configLagMs } = recorder.snapshot()
    expect(checks).toEqual({ hits: 1, total: 3 })
    expect(storeCalls).toEqual({ hits: 1, total: 2 })
    const bounds = latencyBoundsMs(10)
    const expected = new Array(bounds.length + 1).fill(0)
    expected[bounds.indexOf(0.5)] = 1
    expected[bounds.length] = 1
    expect(storeLatency).toEqual(expected)
    expect(configLagMs).toBe(1234)
  })

  it('takes a call that was not made for a failure, and not for a quick one', () => {
    const { recorder } = recorderOf()
    recorder.recordStoreCall(0, true)
    const { storeCalls, storeLatency } = recorder.snapshot()
    expect(storeCalls).toEqual({ hits: 1, total: 1 })
    expect(storeLatency).not.toContain(1)
  })

  it('forgets what is older than the window of its rule, also when nothing else comes', () => {
    const { recorder, time } = recorderOf({ 'denial-rate': { windowSeconds: 2 }, 'store-errors': { windowSeconds: 3 } })
    recorder.recordCheck(true)
    recorder.recordStoreCall(1, true)
    time.now = START_MS + 1999
    expect(recorder.snapshot()).toMatchObject({ checks: { total: 1 }, storeCalls: { total: 1 } })
    time.now = START_MS + 2000
    expect(recorder.snapshot()).toMatchObject({ checks: { total: 0 }, storeCalls: { total: 1 } })
    time.now = START_MS + 3000
    expect(recorder.snapshot()).toMatchObject({ checks: { total: 0 }, storeCalls: { total: 0 } })
    expect(recorder.snapshot().storeLatency).toContain(1)
    time.now = START_MS + 60_000
    expect(recorder.snapshot().storeLatency).not.toContain(1)
  })

  it('keeps nothing for rules that are not watched', () => {
    const off = { enabled: false }
    const { recorder } = recorderOf({ 'denial-rate': off, 'store-errors': off, 'store-latency': off })
    recorder.recordCheck(true)
    recorder.recordStoreCall(1, true)
    expect(recorder.snapshot()).toEqual({
      checks: { hits: 0, total: 0 },
      storeCalls: { hits: 0, total: 0 },
      storeLatency: [],
      configLagMs: 0,
    })
  })

  it('gives plain data, which goes from thread to thread', () => {
    const { recorder } = recorderOf()
    recorder.recordStoreCall(1, true)
    const snapshot = recorder.snapshot()
    expect(structuredClone(snapshot)).toEqual(snapshot)
    expect(JSON.parse(JSON.stringify(snapshot))).toEqual(snapshot)
  })
})

describe('bounds of latency', () => {
  it.each([10, 0.001, 12.5, 10_000])('have the threshold %d once, in its place, and one above it', (threshold) => {
    const bounds = latencyBoundsMs(threshold)
    expect(bounds.filter((bound) => bound === threshold)).toHaveLength(1)
    expect(bounds).toEqual([...bounds].sort((one, other) => one - other))
    expect(bounds.at(-1)).toBeGreaterThan(threshold)
  })
})

describe('snapshots of several threads', () => {
  it('say nothing when there is none', () => {
    expect(mergeSignals([])).toEqual({
      checks: { hits: 0, total: 0 },
      storeCalls: { hits: 0, total: 0 },
      storeLatency: [],
      configLagMs: 0,
    })
  })

  it('are as far behind as the thread that is farthest', () => {
    const lags = [5, 900_000, 0].map((lagMs) => recorderOf({}, lagMs).recorder.snapshot())
    expect(mergeSignals(lags).configLagMs).toBe(900_000)
  })

  it('property: tell the same as one thread that saw everything', () => {
    const event = fc.record({
      thread: fc.nat(3),
      micros: fc.nat(100_000),
      failed: fc.boolean(),
      denied: fc.boolean(),
      passMs: fc.nat(5000),
    })
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        let now = START_MS
        const parts = { rules: alertRules(), nowMs: () => now, configLagMs: () => 0 }
        const threads = Array.from({ length: 4 }, () => new SignalRecorder(parts))
        const all = new SignalRecorder(parts)
        for (const { thread, micros, failed, denied, passMs } of events) {
          for (const recorder of [threads[thread]!, all]) {
            recorder.recordCheck(denied)
            recorder.recordStoreCall(micros, failed)
          }
          now += passMs
        }
        const merged = mergeSignals(threads.map((recorder) => recorder.snapshot()))
        expect(merged).toEqual(all.snapshot())
        for (const rule of alertRules()) expect(readingOf(rule, merged)).toBe(readingOf(rule, all.snapshot()))
      }),
    )
  })
})
