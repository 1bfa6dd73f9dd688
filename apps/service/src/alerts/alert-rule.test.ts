import { SchemaCheck } from '@sluice/core/internal'
import { describe, expect, it } from 'vitest'
import type { AlertOptions } from '../settings/alert-settings.ts'
import { ALERT_OPTIONS_SCHEMA } from '../settings/alert-settings.ts'
import type { AlertRule, AlertRuleName } from './alert-rule.ts'
import { alertBounds, alertRules } from './alert-rule.ts'

function ruleIn(rules: readonly AlertRule[], name: AlertRuleName): AlertRule | undefined {
  return rules.find((rule) => rule.name === name)
}

describe('the bounds', () => {
  it('are the thresholds of the rules that are on', () => {
    expect(alertBounds(alertRules())).toEqual({ denialRate: 0.2, storeLatencyMs: 10, configLagMs: 600_000 })
    const options = { 'denial-rate': { threshold: 0.5 }, 'store-latency': { enabled: false } } as const
    expect(alertBounds(alertRules(options))).toEqual({ denialRate: 0.5, configLagMs: 600_000 })
  })
})

describe('rules by default', () => {
  it('watch latency, denials and errors of a minute, and how old the rules in force are', () => {
    expect(alertRules()).toEqual([
      {
        name: 'store-latency',
        threshold: 10,
        unit: 'ms',
        forMs: 300_000,
        resolveAfterMs: 60_000,
        windowMs: 60_000,
        leastSamples: 10,
      },
      {
        name: 'denial-rate',
        threshold: 0.2,
        unit: 'ratio',
        forMs: 120_000,
        resolveAfterMs: 60_000,
        windowMs: 60_000,
        leastSamples: 10,
      },
      {
        name: 'store-errors',
        threshold: 0.01,
        unit: 'ratio',
        forMs: 0,
        resolveAfterMs: 60_000,
        windowMs: 60_000,
        leastSamples: 10,
      },
      {
        name: 'config-lag',
        threshold: 600,
        unit: 's',
        forMs: 0,
        resolveAfterMs: 60_000,
        windowMs: 0,
        leastSamples: 0,
      },
    ])
  })
})

describe('options', () => {
  const measured: readonly AlertRuleName[] = ['store-latency', 'denial-rate', 'store-errors']

  it.each([...measured, 'config-lag'] as const)('change threshold and times of %s, and nothing else', (name) => {
    const rules = alertRules({ [name]: { threshold: 0.5, forSeconds: 7, resolveAfterSeconds: 1.5 } })
    const before = ruleIn(alertRules(), name)
    expect(ruleIn(rules, name)).toEqual({ ...before, threshold: 0.5, forMs: 7000, resolveAfterMs: 1500 })
    expect(rules.filter((rule) => rule.name !== name)).toEqual(alertRules().filter((rule) => rule.name !== name))
  })

  it.each(measured)('change window and least samples of %s', (name) => {
    const rule = ruleIn(alertRules({ [name]: { windowSeconds: 30, leastSamples: 1 } }), name)
    expect(rule).toEqual({ ...ruleIn(alertRules(), name), windowMs: 30_000, leastSamples: 1 })
  })

  it('can say that a threshold or a time is zero', () => {
    const rules = alertRules({ 'denial-rate': { threshold: 0, forSeconds: 0, resolveAfterSeconds: 0 } })
    expect(ruleIn(rules, 'denial-rate')).toMatchObject({ threshold: 0, forMs: 0, resolveAfterMs: 0 })
  })

  it.each([...measured, 'config-lag'] as const)('leave %s out when it is not enabled', (name) => {
    expect(ruleIn(alertRules({ [name]: { enabled: false } }), name)).toBeUndefined()
    expect(ruleIn(alertRules({ [name]: { enabled: true } }), name)).toEqual(ruleIn(alertRules(), name))
  })
})

describe('the schema of options', () => {
  const check = new SchemaCheck(ALERT_OPTIONS_SCHEMA)

  it('takes everything that can be set', () => {
    const all = {
      enabled: true,
      threshold: 0.5,
      forSeconds: 0.25,
      resolveAfterSeconds: 0,
      windowSeconds: 3600,
      leastSamples: 1,
    }
    const { windowSeconds, leastSamples, ...times } = all
    const options: AlertOptions = {
      'store-latency': all,
      'denial-rate': all,
      'store-errors': all,
      'config-lag': times,
      remindEverySeconds: 3600,
    }
    expect(check.problemsOf(options)).toEqual([])
    expect(check.problemsOf({})).toEqual([])
  })

  it.each([
    ['/denial-rate/threshold', { 'denial-rate': { threshold: 1.01 } }],
    ['/denial-rate/threshold', { 'denial-rate': { threshold: -0.1 } }],
    ['/store-errors/threshold', { 'store-errors': { threshold: 20 } }],
    ['/store-latency/threshold', { 'store-latency': { threshold: 0 } }],
    ['/store-latency/threshold', { 'store-latency': { threshold: 10_001 } }],
    ['/config-lag/threshold', { 'config-lag': { threshold: '10m' } }],
    ['/config-lag/windowSeconds', { 'config-lag': { windowSeconds: 60 } }],
    ['/denial-rate/windowSeconds', { 'denial-rate': { windowSeconds: 1.5 } }],
    ['/denial-rate/windowSeconds', { 'denial-rate': { windowSeconds: 3601 } }],
    ['/denial-rate/leastSamples', { 'denial-rate': { leastSamples: 0 } }],
    ['/denial-rate/forSeconds', { 'denial-rate': { forSeconds: -1 } }],
    ['/denial-rate/resolveAfterSeconds', { 'denial-rate': { resolveAfterSeconds: 86_401 } }],
    ['/denial-rate/enabled', { 'denial-rate': { enabled: 'no' } }],
    ['/denialRate', { denialRate: {} }],
    ['/remindEverySeconds', { remindEverySeconds: -1 }],
  ])('rejects %s of %j', (path, options) => {
    expect(check.problemsOf(options).map((problem) => problem.path)).toEqual([path])
  })
})
