import { describe, expect, it } from 'vitest'
import { summaryOf } from './alert-record.ts'
import type { AlertRule, AlertRuleName } from './alert-rule.ts'
import { alertRules } from './alert-rule.ts'
import type { SignalSnapshot } from './alert-signals.ts'
import { mergeSignals, readingOf, SignalRecorder } from './alert-signals.ts'
import { START_MS } from './alerts.test.support.ts'

const NOTHING = mergeSignals([])

function ruleOf(name: AlertRuleName, options = {}): AlertRule {
  return alertRules({ [name]: options }).find((rule) => rule.name === name)!
}

/** `count` calls of `micros` microseconds each. */
function latencies(rule: AlertRule, calls: readonly (readonly [count: number, micros: number])[]): SignalSnapshot {
  const recorder = new SignalRecorder({ rules: [rule], nowMs: () => START_MS, configLagMs: () => 0 })
  for (const [count, micros] of calls) {
    for (let call = 0; call < count; call++) recorder.recordStoreCall(micros, false)
  }
  return recorder.snapshot()
}

describe('latency of the store', () => {
  const rule = ruleOf('store-latency')

  it.each<[string, (readonly [number, number])[], boolean]>([
    ['all calls at the threshold', [[100, 10_000]], false],
    ['all calls above it', [[100, 10_001]], true],
    [
      '1 of 100 above it',
      [
        [99, 1000],
        [1, 50_000],
      ],
      false,
    ],
    [
      '2 of 100 above it',
      [
        [98, 1000],
        [2, 10_001],
      ],
      true,
    ],
    [
      '10 of 1000 above it',
      [
        [990, 1000],
        [10, 50_000],
      ],
      false,
    ],
    [
      '11 of 1000 above it',
      [
        [989, 1000],
        [11, 50_000],
      ],
      true,
    ],
    [
      '1 of 10 above it',
      [
        [9, 1000],
        [1, 10_001],
      ],
      true,
    ],
  ])('with %s', (_, calls, isAbove) => {
    expect(readingOf(rule, latencies(rule, calls))! > rule.threshold).toBe(isAbove)
  })

  it('is not known below the least number of calls', () => {
    expect(readingOf(rule, latencies(rule, [[9, 50_000]]))).toBeUndefined()
    expect(readingOf(rule, latencies(rule, [[10, 50_000]]))).toBeGreaterThan(30)
    expect(readingOf(rule, NOTHING)).toBeUndefined()
  })

  it('is exact at a threshold of any size', () => {
    const odd = ruleOf('store-latency', { threshold: 1.234 })
    expect(readingOf(odd, latencies(odd, [[100, 1234]]))).toBeLessThanOrEqual(1.234)
    expect(readingOf(odd, latencies(odd, [[100, 1235]]))).toBeGreaterThan(1.234)
  })
})

describe('shares', () => {
  it.each([
    ['denial-rate', 'checks'],
    ['store-errors', 'storeCalls'],
  ] as const)('%s is that of %s, and not known below the least number', (name, field) => {
    const rule = ruleOf(name)
    const reading = (hits: number, total: number) => readingOf(rule, { ...NOTHING, [field]: { hits, total } })
    expect(reading(3, 10)).toBe(0.3)
    expect(reading(0, 10)).toBe(0)
    expect(reading(9, 9)).toBeUndefined()
    expect(reading(0, 0)).toBeUndefined()
  })
})

describe('lag of the rules', () => {
  it('is in seconds', () => {
    expect(readingOf(ruleOf('config-lag'), { ...NOTHING, configLagMs: 600_001 })).toBe(600.001)
  })
})

describe('a summary', () => {
  it.each<[AlertRuleName, number, string]>([
    ['store-latency', 14.23456, 'the p99 of store calls in the last 60 seconds is 14.23 ms, above 10 ms'],
    ['denial-rate', 0.2727, '27.27 % of checks in the last 60 seconds were denied, above 20 %'],
    ['store-errors', 0.5, '50 % of store calls in the last 60 seconds failed, above 1 %'],
    ['config-lag', 661, 'the active rules have been out of date for 661 seconds, above 600 seconds'],
  ])('of %s tells value, window and threshold', (name, value, summary) => {
    expect(summaryOf(ruleOf(name), value)).toBe(summary)
  })
})
