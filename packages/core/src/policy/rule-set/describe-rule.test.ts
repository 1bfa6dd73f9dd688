import { describe, expect, it } from 'vitest'
import { checkRuleSet } from './checks/check-rule-set.ts'
import { describeMatch, describeRule, describeTier } from './describe-rule.ts'
import type { PolicyRule } from './rule-set.ts'

type Numbers = Omit<PolicyRule, 'resource' | 'dimension'> & Readonly<Record<string, unknown>>

/** The rule for users of POST /orders, which must be one that can be used. */
function described(numbers: Numbers, place: Partial<PolicyRule> = {}): readonly string[] {
  const rule = { resource: '/orders', dimension: 'user', ...place, ...numbers } as unknown as PolicyRule
  expect(checkRuleSet({ rules: [rule], dimensions: ['model'] })).toEqual([])
  return describeRule(rule)
}

/** Only what comes after the beginning that all have. */
function terms(numbers: Numbers): string {
  return described(numbers)[0]!.replace('Each user may call /orders ', '')
}

describe('who and what', () => {
  const minute = { limit: 100, window: '1m' }

  it.each([
    ['ip', 'Each IP address may'],
    ['user', 'Each user may'],
    ['apiKey', 'Each API key may'],
    ['tenant', 'Each tenant may'],
    ['service', 'Each internal service may'],
    ['global', 'All callers together may'],
    ['model', 'Each model may'],
    ['tenant+user', 'Each combination of tenant and user may'],
  ])('dimension %s', (dimension, text) => {
    expect(described(minute, { dimension })[0]).toBe(`${text} call /orders 100 times a minute.`)
  })

  it.each([
    [{ resource: '*' }, 'all resources'],
    [{ resource: '*', methods: ['post'] }, 'POST on all resources'],
    [{ resource: '/orders/:id' }, '/orders/:id'],
    [{ resource: '/files/*' }, '/files and all below'],
    [{ resource: '/*' }, '/ and all below'],
    [{ resource: 'checkout' }, 'checkout'],
    [{ methods: ['POST'] }, 'POST /orders'],
    [{ methods: ['GET', 'HEAD', 'post'] }, 'GET, HEAD or POST /orders'],
  ])('resource %j', (place, text) => {
    expect(described(minute, place)[0]).toBe(`Each user may call ${text} 100 times a minute.`)
  })

  it.each([
    [{ limit: 0, window: '1m' }, 'Each user may not call /orders at all.'],
    [{ limit: 'off', window: '1m' }, 'Each user may call /orders without a limit.'],
    [{ algorithm: 'token-bucket', capacity: 0, refillPerSecond: 1 }, 'Each user may not call /orders at all.'],
  ] as const)('%j', (numbers, text) => {
    expect(described(numbers as Numbers)).toEqual([text])
  })
})

describe('each algorithm', () => {
  it.each([
    [{ limit: 100, window: '1m' }, '100 times a minute.'],
    [{ algorithm: 'gcra', limit: 100, window: '1m', burst: 20 }, '100 times a minute, in bursts of up to 20.'],
    [{ algorithm: 'gcra', limit: 1, window: '1h' }, 'once an hour.'],
    [{ algorithm: 'gcra', limit: 5, window: '1h30m' }, '5 times every 1 hour 30 minutes.'],
    [{ algorithm: 'gcra', limit: 5, window: '10d' }, '5 times every 10 days.'],
    [{ algorithm: 'gcra', limit: 5, window: '2w' }, '5 times every 2 weeks.'],
    [{ algorithm: 'gcra', limit: 5, window: 250 }, '5 times every 250 milliseconds.'],
    [{ algorithm: 'token-bucket', capacity: 50, refillPerSecond: 10 }, '10 times a second, in bursts of up to 50.'],
    [
      { algorithm: 'token-bucket', capacity: 50, refillPerSecond: 0.5, rollover: true },
      '30 times a minute, in bursts of up to 50, or 100 after a quiet time.',
    ],
    [
      { algorithm: 'leaky-bucket-meter', capacity: 2.5, leakPerSecond: 1 / 60 },
      'once a minute, in bursts of up to 2.5.',
    ],
    [
      { algorithm: 'leaky-bucket-queue', capacity: 50, ratePerSecond: 10 },
      '10 times a second, at an even pace; up to 50 calls wait for their turn, more are denied.',
    ],
    [{ algorithm: 'fixed-window', limit: 12_000, window: '1d' }, '12,000 times a day, counted anew in each window.'],
    [
      { algorithm: 'fixed-window', limit: 100, window: '1m', rollover: true },
      '100 times a minute, counted anew in each window; unused calls carry over to the next window, up to twice the ' +
        'limit in all.',
    ],
    [
      { algorithm: 'fixed-window', limit: 1000, window: { calendar: 'month', timeZone: 'Europe/Berlin' } },
      '1,000 times a calendar month (Europe/Berlin), counted anew in each window.',
    ],
    [
      { algorithm: 'sliding-window-counter', limit: 100, window: '1m' },
      '100 times in any minute, estimated from two counts.',
    ],
    [{ algorithm: 'sliding-window-log', limit: 100, window: '30s' }, '100 times in any 30 seconds, counted exactly.'],
    [
      { algorithm: 'sliding-window-log', limit: 100, window: '1m', segments: 60 },
      '100 times in any minute, counted in 60 parts.',
    ],
    [
      { algorithm: 'hybrid', limit: 100, window: '1m', burst: { capacity: 50, refillPerSecond: 1 } },
      '100 times a minute; callers that are entitled to bursts may make up to 50 more, which come back once a second.',
    ],
  ])('%j', (numbers, text) => {
    expect(terms(numbers as Numbers)).toBe(text)
  })

  it('concurrency', () => {
    expect(described({ algorithm: 'concurrency', limit: 5, lease: '30s' })).toEqual([
      'Each user may have 5 calls of /orders in progress at once; a call that is not renewed within 30 seconds no ' +
        'longer counts.',
    ])
  })

  it('several windows', () => {
    const windows = [
      { limit: 10, window: '1s', burst: 15 },
      { limit: 100, window: '1m' },
      { limit: 1000, window: '1d' },
    ]
    expect(terms({ windows })).toBe('10 times a second (bursts of up to 15), 100 times a minute and 1,000 times a day.')
  })
})

describe('conditions', () => {
  it.each([
    [{ shadow: true }, 'In shadow: it is measured and never denies.'],
    [{ percent: 12.5 }, 'Enforced for 12.5% of callers, measured for the others.'],
    [{ enabled: false }, 'Switched off: the rule has no effect.'],
    [{ always: true }, 'It holds beside the other rules for the same callers.'],
    [{ cost: 5 }, 'Each call counts as 5.'],
    [{ cost: { descriptor: 'bytes', per: 1024 } }, 'Each call counts as its bytes divided by 1,024, rounded up.'],
    [{ cost: { function: 'size' } }, 'The function size says what a call counts as.'],
    [
      { schedule: [{ days: ['sunday', 'saturday'], from: '00:00', to: '00:00', multiplier: 2 }] },
      'On Saturday and Sunday for a day from 00:00 (UTC): 2 times the limit.',
    ],
    [
      { schedule: [{ from: '22:00', to: '06:00', timeZone: 'Europe/Berlin', multiplier: 0.5 }] },
      'Every day from 22:00 to 06:00 (Europe/Berlin): 0.5 times the limit.',
    ],
    [
      { regions: { US: 2, DE: 0.5, FR: 1 } },
      'By region: US 2 times the limit, DE 0.5 times the limit and FR the same limit.',
    ],
    [{ incident: 0.25 }, 'During an incident: 0.25 times the limit.'],
    [
      {
        errorRate: {
          cutAbove: 0.2,
          restoreBelow: 0.05,
          window: '30s',
          leastCalls: 50,
          step: 0.5,
          least: 0.1,
          hold: '10s',
        },
      },
      'While more than 20% of calls fail, the limit is cut step by step, at most to 10%.',
    ],
    [
      { penalty: { after: 10, within: '1m', block: '5m' } },
      'After 10 denials within 1 minute a caller is blocked for 5 minutes, longer each time.',
    ],
    [{ failureMode: 'local' }, 'While the store is unavailable, each node decides with its share of the limit.'],
  ])('%j', (settings, text) => {
    expect(described({ limit: 1, window: '1s', ...settings } as Numbers)).toEqual([
      'Each user may call /orders once a second.',
      text,
    ])
  })
})

describe('tiers and matches', () => {
  it('says what members have', () => {
    expect(describeTier({ name: 'premium', multiplier: 10, burst: 100, entitled: true })).toBe(
      'Members have 10 times the limits that hold for all, 100 more calls at once and the bursts of hybrid rules.',
    )
    const rules = [{ resource: '*', dimension: 'user', limit: 1, window: '1s' }] as const
    expect(describeTier({ name: 'own', rules })).toBe(
      'Members have the limits that hold for all and 1 rule of their own.',
    )
  })

  it('says which requests are meant', () => {
    expect(describeMatch({ resource: '/health' })).toBe('calls of /health')
    expect(describeMatch({ cidrs: ['10.0.0.0/8', '192.0.2.7'] })).toBe('all calls from 10.0.0.0/8 or 192.0.2.7')
    expect(describeMatch({ methods: ['GET'], dimension: 'user', entities: ['ada'], services: ['cart'] })).toBe(
      'calls of GET on all resources by user ada by the service cart',
    )
  })
})
