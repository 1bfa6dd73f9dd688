import { type AlgorithmName, rules } from '@sluice/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ALGORITHMS } from '../../../algorithms/all-algorithms.ts'
import { isSluiceError } from '../../../errors.ts'
import type { RuleSet } from '../rule-set.ts'
import type { RuleSetError, RuleSetProblem } from '../rule-set-error.ts'
import {
  assertRuleSet,
  checkBlock,
  checkIncident,
  checkMembership,
  checkOverride,
  checkRuleSet,
  checkRuleSetFile,
} from './check-rule-set.ts'

const orders = { resource: '/orders', dimension: 'user', limit: 10, window: '1m' } as const

/** Uses everything there is. */
const WHOLE: RuleSet = {
  rules: [
    {
      ...orders,
      name: 'orders',
      methods: ['GET', 'post'],
      always: true,
      cost: { descriptor: 'bytes', per: 1024 },
      failureMode: 'local',
      shadow: false,
      percent: 50,
      regions: { US: 2, 'eu/west': 0.5 },
      schedule: [
        { days: ['saturday', 'sunday'], from: '00:00', to: '24:00', timeZone: 'Europe/Berlin', multiplier: 2 },
        { from: '22:00', to: '06:00', multiplier: 1.5 },
      ],
      incident: 0.5,
      errorRate: {
        cutAbove: 0.2,
        restoreBelow: 0.2,
        window: '30s',
        leastCalls: 50,
        step: 0.5,
        least: 0.1,
        hold: '10s',
      },
      penalty: { after: 10, within: '1m', block: '5m', growth: 1, longest: '1d', forgetAfter: '7d' },
      enabled: true,
    },
    { resource: '/orders', dimension: 'ip', algorithm: 'token-bucket', capacity: 50, refillPerSecond: 0.5, cost: 2 },
    { resource: '*', dimension: 'global', algorithm: 'leaky-bucket-meter', capacity: 'off', leakPerSecond: 1 },
    { resource: '/queue', dimension: 'tenant+user', algorithm: 'leaky-bucket-queue', capacity: 5, ratePerSecond: 1 },
    {
      resource: '/month/:id',
      dimension: 'apiKey',
      algorithm: 'fixed-window',
      limit: 10,
      window: { calendar: 'month', timeZone: 'Asia/Kolkata', weekStart: 'sunday' },
      rollover: true,
    },
    {
      resource: '/files/*',
      dimension: 'plan',
      algorithm: 'sliding-window-counter',
      windows: [
        { limit: 1, window: '1s' },
        { limit: 10, window: '1m', burst: 20 },
      ],
    },
    { resource: '/log', dimension: 'user', algorithm: 'sliding-window-log', limit: 10, window: '1h', segments: 60 },
    {
      resource: 'checkout',
      dimension: 'user',
      algorithm: 'hybrid',
      limit: 10,
      window: '1h',
      burst: { capacity: 0, refillPerSecond: 1 },
    },
    {
      resource: '/slots',
      dimension: 'user',
      algorithm: 'concurrency',
      limit: 3,
      lease: '30s',
      cost: { function: 'f' },
    },
  ],
  tiers: [{ name: 'premium', multiplier: 10, burst: 100, entitled: true, rules: [orders] }],
  exemptions: [
    { name: 'health', match: { resource: '/health', methods: ['GET'] } },
    { name: 'internal', match: { services: ['billing'], cidrs: ['10.0.0.0/8', '::1'] }, rules: [orders] },
  ],
  denyList: [{ name: 'abuse', match: { dimension: 'user', entities: ['u1'] }, expiresAt: 1_800_000_000_000 }],
  regions: { US: 2 },
  incident: 0.5,
  errorRate: { cutAbove: 1, restoreBelow: 0.1, window: 500, leastCalls: 1, step: 0.9, least: 1, hold: '1s' },
  domains: [
    {
      domain: 'shop',
      descriptors: [
        {
          key: 'route',
          value: '/orders/*',
          shareThreshold: true,
          descriptors: [
            { key: 'api_key', limit: { unit: 'minute', requestsPerUnit: 300, name: 'orders' } },
            { key: 'api_key', value: 'internal', limit: { unlimited: true } },
          ],
        },
        {
          key: 'plan',
          value: 'trial',
          shadow: true,
          quota: false,
          detailedMetric: true,
          valueToMetric: true,
          metadata: { any: [{ thing: null }] },
          limit: {
            unit: 'day',
            requestsPerUnit: 0,
            unlimited: false,
            drain: true,
            replaces: ['orders', 'no such limit'],
          },
        },
      ],
    },
  ],
}

function told(problems: readonly RuleSetProblem[]): string[] {
  return problems.map(({ path, received, expected }) => `${path} is ${received}, expected ${expected}`)
}

/** A rule set with one rule that says something else. */
const one = (changes: object): unknown => ({ rules: [{ ...orders, ...changes }] })

const bucket = { resource: '/a', dimension: 'user', algorithm: 'token-bucket', capacity: 5, refillPerSecond: 1 }
const cut = { cutAbove: 0.2, restoreBelow: 0.1, window: '30s', leastCalls: 50, step: 0.5, least: 0.1, hold: '10s' }
const penalty = { after: 10, within: '1m', block: '5m' }
const shop = (...descriptors: object[]): unknown => ({ rules: [], domains: [{ domain: 'shop', descriptors }] })
const limit = { unit: 'minute', requestsPerUnit: 1 }
const denied = (match: unknown): unknown => ({ rules: [], denyList: [{ name: 'a', match }] })

describe('a rule set that can be used', () => {
  it('may use everything there is', () => {
    expect(checkRuleSet(WHOLE, { costFunctions: ['f'] })).toEqual([])
    expect(assertRuleSet(WHOLE)).toBe(WHOLE)
  })

  it('may have no rules', () => {
    expect(checkRuleSet({ rules: [] })).toEqual([])
  })

  it.each(Object.keys(ALGORITHMS) as AlgorithmName[])('may have any rule that a limiter takes: %s', (algorithm) => {
    fc.assert(
      fc.property(rules(algorithm), (rule) => {
        expect(checkRuleSet({ rules: [{ ...rule, resource: '/a', dimension: 'user' }] })).toEqual([])
      }),
    )
  })

  it.each<[string, object[]]>([
    ['for different methods', [{ methods: ['GET'] }, { methods: ['POST'] }, {}]],
    ['for different dimensions', [{ dimension: 'user' }, { dimension: 'ip' }, { dimension: 'user+ip' }]],
    ['beside one that always holds, by another name', [{}, { always: true, name: 'always' }]],
    ['beside one that is switched off, by another name', [{}, { enabled: false, name: 'off' }]],
    ['for what only one pattern of both matches', [{ resource: '/a/:id' }, { resource: '/a/b' }, { resource: '/a/*' }]],
  ])('may have several rules %s', (_, changes) => {
    expect(checkRuleSet({ rules: changes.map((change) => ({ ...orders, ...change })) })).toEqual([])
  })

  it('may have the same rule for all, for a tier and for an exemption', () => {
    const exemption = { name: 'a', match: { services: ['x'] }, rules: [orders] }
    expect(checkRuleSet({ rules: [orders], tiers: [{ name: 'a', rules: [orders] }], exemptions: [exemption] })).toEqual(
      [],
    )
  })
})

describe('a mistake in a rule set is reported with its path, the value found and the value expected', () => {
  it.each<[string, unknown, string[]]>([
    [
      'no object',
      [],
      [
        ' is an empty list, expected a rule set such as { rules: [{ resource: "*", dimension: "ip", limit: 100, ' +
          'window: "1m" }] }',
      ],
    ],
    ['no rules', {}, ['/rules is missing, expected a list']],
    ['rules that are no list', { rules: {} }, ['/rules is an object without properties, expected a list']],
    [
      'an unknown part',
      { rules: [], tier: [] },
      ['/tier is an unknown property, expected a known one; did you mean "tiers"?'],
    ],
    [
      'what only files have',
      { rules: [], overrides: [{}], version: 1 },
      [
        '/overrides is an unknown property, expected only rules, dimensions, tiers, exemptions, denyList, regions, ' +
          'incident, errorRate, domains',
        '/version is an unknown property, expected only rules, dimensions, tiers, exemptions, denyList, regions, ' +
          'incident, errorRate, domains',
      ],
    ],
    [
      'a rule that is no object',
      { rules: ['a'] },
      ['/rules/0 is "a", expected a rule such as { resource: "/orders", dimension: "user", limit: 100, window: "1m" }'],
    ],

    [
      'an unknown algorithm',
      one({ algorithm: 'gcr' }),
      [
        '/rules/0/algorithm is "gcr", expected one of "gcra", "fixed-window", "sliding-window-counter", ' +
          '"sliding-window-log", "token-bucket", "leaky-bucket-meter", "leaky-bucket-queue", "hybrid", ' +
          '"concurrency"; did you mean "gcra"?',
      ],
    ],
    [
      'an option of another algorithm',
      { rules: [{ ...bucket, segments: 6 }] },
      [
        '/rules/0/segments is an unknown property, expected only resource, dimension, algorithm, capacity, ' +
          'refillPerSecond, rollover, name, methods, always, cost, failureMode, shadow, and 8 more',
      ],
    ],
    [
      'no numbers',
      { rules: [{ resource: '/a', dimension: 'user' }] },
      [
        '/rules/0/limit is missing, expected a whole number from 0 to 9000000000, or "off"',
        '/rules/0/window is missing, expected a duration such as "250ms", "1m" or "1h30m", or a number of ' +
          'milliseconds above 0',
      ],
    ],
    [
      'a limit below 0',
      one({ limit: -1 }),
      ['/rules/0/limit is -1, expected a whole number from 0 to 9000000000, or "off"'],
    ],
    [
      'a limit that is too large',
      one({ limit: 9_000_000_001 }),
      ['/rules/0/limit is 9000000001, expected a whole number from 0 to 9000000000, or "off"'],
    ],
    [
      'a limit that is too large for the exact log',
      one({ algorithm: 'sliding-window-log', limit: 100_001 }),
      ['/rules/0/limit is 100001, expected at most 100000 (Add "segments: 60" for constant memory, or use gcra)'],
    ],
    [
      'a string for a limit',
      one({ limit: '10' }),
      ['/rules/0/limit is "10", expected a whole number from 0 to 9000000000, or "off"'],
    ],
    [
      'a window without a unit',
      one({ window: '60' }),
      [
        '/rules/0/window is "60", expected a duration such as "250ms", "1m" or "1h30m", or a number of ' +
          'milliseconds above 0',
      ],
    ],
    [
      'a window of no length',
      one({ window: '0s' }),
      [
        '/rules/0/window is "0s", expected milliseconds above 0 and at most 100 years, as a number or a string ' +
          'such as "250ms", "1m" or "1h30m" (Give "window" with its unit, for example "1m")',
      ],
    ],
    [
      'a calendar window where none can be',
      one({ window: { calendar: 'day' } }),
      [
        '/rules/0/window is an object with calendar, expected a duration such as "250ms", "1m" or "1h30m", or a ' +
          'number of milliseconds above 0',
      ],
    ],
    [
      'an unknown calendar period',
      one({ algorithm: 'fixed-window', window: { calendar: 'year' } }),
      ['/rules/0/window/calendar is "year", expected one of "minute", "hour", "day", "week", "month"'],
    ],
    [
      'an unknown time zone of a window',
      one({ algorithm: 'fixed-window', window: { calendar: 'day', timeZone: 'Mars' } }),
      ['/rules/0/window/timeZone is "Mars", expected an IANA name such as "Europe/Berlin"'],
    ],
    [
      'an unknown time zone of one of several windows',
      {
        rules: [
          {
            resource: '/a',
            dimension: 'user',
            algorithm: 'fixed-window',
            windows: [
              { limit: 1, window: '1s' },
              { limit: 1, window: { calendar: 'day', timeZone: 'Mars' } },
            ],
          },
        ],
      },
      ['/rules/0/windows/1/window/timeZone is "Mars", expected an IANA name such as "Europe/Berlin"'],
    ],
    [
      'several windows and one',
      one({ windows: [{ limit: 1, window: '1s' }] }),
      ['/rules/0/windows is a list of 1, expected nothing beside "limit" and "window"'],
    ],
    [
      'several windows and a burst',
      { rules: [{ resource: '/a', dimension: 'user', windows: [{ limit: 1, window: '1s' }], burst: 5 }] },
      ['/rules/0/burst is 5, expected nothing beside "windows"'],
    ],
    [
      'two windows of one length',
      {
        rules: [
          {
            resource: '/a',
            dimension: 'user',
            windows: [
              { limit: 1, window: '1m' },
              { limit: 2, window: '60s' },
            ],
          },
        ],
      },
      ['/rules/0/windows is "60s", expected windows of different lengths'],
    ],
    [
      'one of several windows',
      {
        rules: [
          {
            resource: '/a',
            dimension: 'user',
            windows: [
              { limit: 1, window: '1m' },
              { limit: 2, window: '200000w' },
            ],
          },
        ],
      },
      [
        '/rules/0/windows/1/window is "200000w", expected milliseconds above 0 and at most 100 years, as a number ' +
          'or a string such as "250ms", "1m" or "1h30m" (Give "window" with its unit, for example "1m")',
      ],
    ],
    [
      '17 windows',
      {
        rules: [
          {
            resource: '/a',
            dimension: 'user',
            windows: Array.from({ length: 17 }, (_, index) => ({ limit: 1, window: index + 1 })),
          },
        ],
      },
      ['/rules/0/windows is a list of 17, expected a list of 1 to 16 entries of { limit, window }'],
    ],
    [
      'a burst below the limit',
      one({ algorithm: 'sliding-window-counter', burst: 9 }),
      ['/rules/0/burst is 9, expected a whole number from 10 to 9000000000'],
    ],
    [
      'a burst with rollover',
      one({ algorithm: 'fixed-window', burst: 20, rollover: true }),
      [
        '/rules/0/burst is "burst" together with "rollover", expected one of them (Use the hybrid algorithm, whose ' +
          'burst has a refill rate of its own)',
      ],
    ],
    [
      'a rate of nothing',
      { rules: [{ ...bucket, refillPerSecond: 0 }] },
      ['/rules/0/refillPerSecond is 0, expected units per second, above 0 (such as 0.1), at most 9000000000'],
    ],
    [
      'a lease without a unit',
      { rules: [{ resource: '/a', dimension: 'user', algorithm: 'concurrency', limit: 1, lease: '9' }] },
      [
        '/rules/0/lease is "9", expected a duration such as "250ms", "1m" or "1h30m", or a number of milliseconds ' +
          'above 0',
      ],
    ],
    [
      'a lease of no length',
      { rules: [{ resource: '/a', dimension: 'user', algorithm: 'concurrency', limit: 1, lease: '0s' }] },
      [
        '/rules/0/lease is "0s", expected milliseconds above 0 and at most 100 years, as a number or a string ' +
          'such as "250ms", "1m" or "1h30m" (Give "lease" with its unit, for example "1m")',
      ],
    ],
    [
      'no segments',
      one({ algorithm: 'sliding-window-log', segments: 0 }),
      ['/rules/0/segments is 0, expected a whole number from 1 to 1000'],
    ],
    [
      'an unknown failure mode',
      one({ failureMode: 'opened' }),
      ['/rules/0/failureMode is "opened", expected one of "open", "closed", "local"; did you mean "open"?'],
    ],

    [
      'an empty resource',
      one({ resource: '' }),
      ['/rules/0/resource is "", expected a resource such as "/orders/:id", "/files/*", "*" or "checkout"'],
    ],
    [
      'a resource that is no pattern',
      one({ resource: '/a*' }),
      [
        '/rules/0/resource is "/a*", expected a resource that can be matched: the segment "a*" has a "*" inside; ' +
          'it can only be a whole segment (write %2a for the character)',
      ],
    ],
    [
      'a resource with a query',
      one({ resource: '/a?b' }),
      [
        '/rules/0/resource is "/a?b", expected a resource that can be matched: it has a query or a fragment; only ' +
          'paths are matched',
      ],
    ],
    [
      'a dimension that is no name',
      one({ dimension: 'user id' }),
      [
        '/rules/0/dimension is "user id", expected a dimension such as "ip", "user", "apiKey", "tenant", ' +
          '"service", "global", a descriptor, or several joined by "+"',
      ],
    ],
    [
      'a dimension with nothing after the +',
      one({ dimension: 'user+' }),
      [
        '/rules/0/dimension is "user+", expected a dimension such as "ip", "user", "apiKey", "tenant", "service", ' +
          '"global", a descriptor, or several joined by "+"',
      ],
    ],
    [
      'a dimension with a name twice',
      one({ dimension: 'user+ip+user' }),
      ['/rules/0/dimension is "user+ip+user", expected each name once'],
    ],
    [
      'global beside another dimension',
      one({ dimension: 'global+ip' }),
      ['/rules/0/dimension is "global+ip", expected no "global" beside others: it is the same for all calls'],
    ],
    ['no method', one({ methods: [] }), ['/rules/0/methods is an empty list, expected a list that is not empty']],
    ['a method twice', one({ methods: ['GET', 'GET'] }), ['/rules/0/methods/1 is "GET", expected each only once']],
    ['a string for methods', one({ methods: 'GET' }), ['/rules/0/methods is "GET", expected a list that is not empty']],
    [
      'a method that is none',
      one({ methods: ['G T'] }),
      ['/rules/0/methods/0 is "G T", expected an HTTP method such as "GET"'],
    ],
    [
      'a name that cannot be one',
      one({ name: 'a b' }),
      [
        '/rules/0/name is "a b", expected 1 to 96 letters, digits or any of _ . : / * @ -, beginning with a ' +
          'letter, a digit, / or *, and not with "tier:", "exemption:", "shadow:", "penalty:", "descriptors:" or ' +
          '"default:"',
      ],
    ],
    [
      'a name that is too long',
      one({ name: 'a'.repeat(97) }),
      [expect.stringContaining('/rules/0/name is "aaa') as string],
    ],
    ...['tier:a', 'exemption:a', 'shadow:a', 'penalty:a'].map((name): [string, unknown, string[]] => [
      `the name ${name}`,
      one({ name }),
      [expect.stringContaining(`/rules/0/name is "${name}", expected 1 to 96 letters`) as string],
    ]),
    [
      'two rules of one name',
      {
        rules: [
          { ...orders, name: 'a' },
          { ...orders, resource: '/b', name: 'a' },
        ],
      },
      ['/rules/1/name is "a", expected a name of its own: /rules/0 is "a"'],
    ],
    [
      'a name that another rule gets by itself',
      { rules: [orders, { ...orders, resource: '/b', name: '/orders@user' }] },
      ['/rules/1/name is "/orders@user", expected a name of its own: /rules/0 is "/orders@user"'],
    ],
    [
      'two rules that get one name',
      { rules: [orders, { ...orders, always: true }] },
      ['/rules/1/name is missing, expected a name of its own: /rules/0 is "/orders@user"'],
    ],
    [
      'two rules for the same',
      { rules: [orders, { ...orders, resource: '/Orders//', name: 'b' }] },
      [
        '/rules/1 is for the same resource, dimension and method as /rules/0, expected one rule for each of them, ' +
          'or "always: true" for one to hold beside the other',
      ],
    ],
    [
      'two rules for one method',
      {
        rules: [
          { ...orders, methods: ['GET', 'PUT'] },
          { ...orders, methods: ['put', 'POST'], name: 'b' },
        ],
      },
      [
        '/rules/1 is for the same resource, dimension and method as /rules/0, expected one rule for each of them, ' +
          'or "always: true" for one to hold beside the other',
      ],
    ],
    [
      'two rules of which one is for GET and one for HEAD',
      {
        rules: [
          { ...orders, methods: ['HEAD'] },
          { ...orders, methods: ['GET'] },
        ],
      },
      [
        '/rules/1 is for the same resource, dimension and method as /rules/0, expected one rule for each of them, ' +
          'or "always: true" for one to hold beside the other',
      ],
    ],
    [
      'two rules for one dimension in two spellings',
      {
        rules: [
          { ...orders, dimension: 'a+b' },
          { ...orders, dimension: 'b+a' },
        ],
      },
      [
        '/rules/1 is for the same resource, dimension and method as /rules/0, expected one rule for each of them, ' +
          'or "always: true" for one to hold beside the other',
      ],
    ],

    [
      'a cost below 0',
      one({ cost: -1 }),
      [
        '/rules/0/cost is -1, expected a whole number of units, { descriptor: "bytes", per: 1024 } or { function: ' +
          '"name" }',
      ],
    ],
    [
      'a cost of nothing known',
      one({ cost: { field: 'x' } }),
      [
        '/rules/0/cost/field is an unknown property, expected only descriptor, per',
        '/rules/0/cost/descriptor is missing, expected a non-empty string',
      ],
    ],
    [
      'a cost per nothing',
      one({ cost: { descriptor: 'x', per: 0 } }),
      ['/rules/0/cost/per is 0, expected a number, above 0'],
    ],
    [
      'a cost function that is not there',
      one({ cost: { function: 'tokens' } }),
      ['/rules/0/cost/function is "tokens", expected one of bytes, rows'],
    ],
    ['a percentage above 100', one({ percent: 101 }), ['/rules/0/percent is 101, expected a number from 0 to 100']],
    ['a string for a switch', one({ shadow: 'yes' }), ['/rules/0/shadow is "yes", expected true or false']],
    [
      'a region with a multiplier of 0',
      one({ regions: { 'a/b': 0 } }),
      ['/rules/0/regions/a~1b is 0, expected a number, above 0 and at most 1000000'],
    ],
    [
      'a region without a name',
      one({ regions: { '': 1 } }),
      ['/rules/0/regions/ is named "", expected a region of 1 to 64 characters as its name'],
    ],
    [
      'an incident multiplier of 0',
      one({ incident: 0 }),
      ['/rules/0/incident is 0, expected a number, above 0 and at most 1000000'],
    ],
    [
      'a time that does not exist',
      one({ schedule: [{ from: '8:00', to: '24:30', multiplier: 2 }] }),
      [
        '/rules/0/schedule/0/from is "8:00", expected a time of day such as "08:30"',
        '/rules/0/schedule/0/to is "24:30", expected a time of day such as "08:30"',
      ],
    ],
    [
      'an unknown day',
      one({ schedule: [{ days: ['sundy'], from: '08:00', to: '09:00', multiplier: 2 }] }),
      [
        '/rules/0/schedule/0/days/0 is "sundy", expected one of "sunday", "monday", "tuesday", "wednesday", ' +
          '"thursday", "friday", "saturday"; did you mean "sunday"?',
      ],
    ],
    [
      'an unknown time zone of a schedule',
      one({ schedule: [{ from: '08:00', to: '09:00', multiplier: 2, timeZone: 'Europe/Nowhere' }] }),
      ['/rules/0/schedule/0/timeZone is "Europe/Nowhere", expected an IANA name such as "Europe/Berlin"'],
    ],
    [
      'a cut that is given back before it comes',
      one({ errorRate: { ...cut, restoreBelow: 0.3 } }),
      ['/rules/0/errorRate/restoreBelow is 0.3, expected at most 0.2, which is "cutAbove"'],
    ],
    [
      'a cut that is never given back',
      one({ errorRate: { ...cut, restoreBelow: 0 } }),
      ['/rules/0/errorRate/restoreBelow is 0, expected a number above 0 and at most 1'],
    ],
    [
      'a cut by steps of nothing',
      one({ errorRate: { ...cut, step: 1 } }),
      ['/rules/0/errorRate/step is 1, expected a number, above 0 and below 1'],
    ],
    [
      'a cut over no time',
      one({ errorRate: { ...cut, window: '0s', hold: '0ms' } }),
      [
        expect.stringContaining('/rules/0/errorRate/window is "0s"') as string,
        expect.stringContaining('/rules/0/errorRate/hold is "0ms"') as string,
      ],
    ],
    [
      'a penalty after nothing',
      one({ penalty: { ...penalty, after: 0 } }),
      ['/rules/0/penalty/after is 0, expected a whole number from 1 to 100000'],
    ],
    [
      'a penalty that shrinks',
      one({ penalty: { ...penalty, growth: 0.5 } }),
      ['/rules/0/penalty/growth is 0.5, expected a number from 1 to 1000'],
    ],
    [
      'a penalty whose longest block is shorter than its first',
      one({ penalty: { ...penalty, longest: '4m' } }),
      ['/rules/0/penalty/longest is "4m", expected at least "5m", which is "block"'],
    ],
    [
      'a penalty of no time',
      one({ penalty: { ...penalty, within: '0s', block: '0s', forgetAfter: '0s' } }),
      [
        expect.stringContaining('/rules/0/penalty/within is "0s"') as string,
        expect.stringContaining('/rules/0/penalty/block is "0s"') as string,
        expect.stringContaining('/rules/0/penalty/forgetAfter is "0s"') as string,
      ],
    ],

    [
      'a tier without a name',
      { rules: [], tiers: [{ multiplier: 2 }] },
      [
        '/tiers/0/name is missing, expected 1 to 64 letters, digits or any of _ . @ -, beginning with a letter or ' +
          'digit',
      ],
    ],
    [
      'a tier with a colon in its name',
      { rules: [], tiers: [{ name: 'a:b' }] },
      ['/tiers/0/name is "a:b", expected 1 to 64 letters, digits or any of _ . @ -, beginning with a letter or digit'],
    ],
    [
      'a tier with a multiplier of 0',
      { rules: [], tiers: [{ name: 'a', multiplier: 0 }] },
      ['/tiers/0/multiplier is 0, expected a number, above 0 and at most 1000000'],
    ],
    [
      'two tiers of one name',
      {
        rules: [],
        tiers: [
          { name: 'a', rules: [orders] },
          { name: 'a', rules: [orders] },
        ],
      },
      ['/tiers/1/name is "a", expected a name of its own: /tiers/0 has it already'],
    ],
    [
      'a wrong rule of a tier',
      { rules: [], tiers: [{ name: 'a', rules: [{ ...orders, resource: '**' }] }] },
      [
        '/tiers/0/rules/0/resource is "**", expected a resource that can be matched: a "*" stands inside a name; ' +
          'write "*" alone for everything',
      ],
    ],
    [
      'two rules of a tier for the same',
      { rules: [], tiers: [{ name: 'a', rules: [orders, orders] }] },
      [
        '/tiers/0/rules/1 is for the same resource, dimension and method as /tiers/0/rules/0, expected one rule ' +
          'for each of them, or "always: true" for one to hold beside the other',
      ],
    ],
    ...['ip', 'global'].map((dimension): [string, unknown, string[]] => [
      `a rule of a tier for ${dimension}`,
      { rules: [], tiers: [{ name: 'a', rules: [{ ...orders, dimension }] }] },
      [
        `/tiers/0/rules/0/dimension is "${dimension}", expected a dimension of callers: the rules of a tier are ` +
          'for its members, not for addresses or all together',
      ],
    ]),
    [
      'an exemption without a match',
      { rules: [], exemptions: [{ name: 'a' }] },
      [
        '/exemptions/0/match is missing, expected at least one of resource, methods, dimension and entities, ' +
          'cidrs, services',
      ],
    ],
    [
      'an exemption of everything',
      { rules: [], exemptions: [{ name: 'a', match: {} }] },
      [
        '/exemptions/0/match is an object without properties, expected at least one of resource, methods, ' +
          'dimension and entities, cidrs, services',
      ],
    ],
    [
      'an exemption of everything, in disguise',
      { rules: [], exemptions: [{ name: 'a', match: { resource: undefined } }] },
      [
        '/exemptions/0/match is an object with resource, expected at least one of resource, methods, dimension and ' +
          'entities, cidrs, services',
      ],
    ],
    [
      'two exemptions of one name',
      {
        rules: [],
        exemptions: [
          { name: 'a', match: { services: ['x'] } },
          { name: 'a', match: { services: ['y'] } },
        ],
      },
      ['/exemptions/1/name is "a", expected a name of its own: /exemptions/0 has it already'],
    ],
    [
      'a wrong rule of an exemption',
      { rules: [], exemptions: [{ name: 'a', match: { services: ['x'] }, rules: [{ ...orders, dimension: 'a+a' }] }] },
      ['/exemptions/0/rules/0/dimension is "a+a", expected each name once'],
    ],
    [
      'two deny entries of one name',
      {
        rules: [],
        denyList: [
          { name: 'a', match: { services: ['x'] } },
          { name: 'a', match: { services: ['y'] } },
        ],
      },
      ['/denyList/1/name is "a", expected a name of its own: /denyList/0 has it already'],
    ],
    [
      'entities without a dimension',
      denied({ entities: ['a'] }),
      [
        '/denyList/0/match/dimension is missing, expected a dimension such as "ip", "user", "apiKey", "tenant", ' +
          '"service", "global", a descriptor, or several joined by "+", beside "entities"',
      ],
    ],
    [
      'a dimension without entities',
      denied({ dimension: 'user' }),
      ['/denyList/0/match/entities is missing, expected a list that is not empty, beside "dimension"'],
    ],
    [
      'entities of a dimension in another order',
      denied({ dimension: 'user+ip', entities: ['a'] }),
      ['/denyList/0/match/dimension is "user+ip", expected "ip+user", with the parts of the entity in the same order'],
    ],
    [
      'a list without entities',
      denied({ services: [] }),
      ['/denyList/0/match/services is an empty list, expected a list that is not empty'],
    ],
    [
      'a match of a resource that is no pattern',
      denied({ resource: '/a/**' }),
      [
        '/denyList/0/match/resource is "/a/**", expected a resource that can be matched: the segment "**" has ' +
          '"**"; write "/*" at the end for everything below',
      ],
    ],
    [
      'what is no address',
      denied({ cidrs: ['10.0.0.0/8', '10.0.0.256'] }),
      [
        '/denyList/0/match/cidrs/1 is "10.0.0.256", expected addresses that can be matched: it is no IP address; ' +
          'write one, or a block such as 10.0.0.0/8 or 2001:db8::/32',
      ],
    ],
    [
      'a block of addresses with bits after its prefix',
      denied({ cidrs: ['10.1.2.3/8'] }),
      [
        '/denyList/0/match/cidrs/0 is "10.1.2.3/8", expected addresses that can be matched: it has bits set after ' +
          'the first 8; write 10.0.0.0/8 for the block, or 10.1.2.3 for the address',
      ],
    ],
    [
      'an end that is no number',
      { rules: [], denyList: [{ name: 'a', match: { services: ['x'] }, expiresAt: '2026-12-31' }] },
      ['/denyList/0/expiresAt is "2026-12-31", expected milliseconds since 1970'],
    ],
    [
      'a region of all with a multiplier below 0',
      { rules: [], regions: { US: -1 } },
      ['/regions/US is -1, expected a number, above 0 and at most 1000000'],
    ],
    [
      'a cut for all that is given back before it comes',
      { rules: [], errorRate: { ...cut, restoreBelow: 1 } },
      ['/errorRate/restoreBelow is 1, expected at most 0.2, which is "cutAbove"'],
    ],
    [
      'a cut for all without its parts',
      { rules: [], errorRate: { cutAbove: 0.5 } },
      [
        expect.stringContaining('/errorRate/restoreBelow is missing') as string,
        ...['window', 'leastCalls', 'step', 'least', 'hold'].map(
          (name) => expect.stringContaining(`/errorRate/${name} is missing`) as string,
        ),
      ],
    ],

    [
      'two domains of one name',
      {
        rules: [],
        domains: [
          { domain: 'a', descriptors: [] },
          { domain: 'a', descriptors: [] },
        ],
      },
      ['/domains/1/domain is "a", expected a name of its own: /domains/0 has it already'],
    ],
    [
      'a domain without a name',
      { rules: [], domains: [{ domain: '', descriptors: [] }] },
      ['/domains/0/domain is "", expected a non-empty string'],
    ],
    [
      'a descriptor without a key',
      shop({ value: 'a', limit }),
      ['/domains/0/descriptors/0/key is missing, expected a non-empty string'],
    ],
    [
      'a key and value twice at a level',
      shop({ key: 'a', value: 'b' }, { key: 'a' }, { key: 'a', value: 'b', limit }),
      [
        '/domains/0/descriptors/2 is a second ["a","b"], expected each key and value once at a level: ' +
          '/domains/0/descriptors/0 has it already',
      ],
    ],
    [
      'an empty value beside none',
      shop({ key: 'a' }, { key: 'a', value: '' }),
      [
        '/domains/0/descriptors/1 is a second ["a",""], expected each key and value once at a level: ' +
          '/domains/0/descriptors/0 has it already',
      ],
    ],
    [
      'a key twice below',
      shop({ key: 'x', descriptors: [{ key: 'a' }, { key: 'a' }] }),
      [
        '/domains/0/descriptors/0/descriptors/1 is a second ["a",""], expected each key and value once at a level: ' +
          '/domains/0/descriptors/0/descriptors/0 has it already',
      ],
    ],
    [
      'no limit with a unit',
      shop({ key: 'a', limit: { unlimited: true, unit: 'day' } }),
      ['/domains/0/descriptors/0/limit/unit is "day", expected nothing beside "unlimited"'],
    ],
    [
      'nothing to drain without a limit',
      shop({ key: 'a', limit: { unlimited: true, drain: true } }),
      ['/domains/0/descriptors/0/limit/drain is true, expected nothing beside "unlimited"'],
    ],
    [
      'a limit without a unit',
      shop({ key: 'a', limit: { requestsPerUnit: 5 } }),
      [
        '/domains/0/descriptors/0/limit/unit is missing, expected one of "second", "minute", "hour", "day", ' +
          '"week", "month", "year"',
      ],
    ],
    [
      'a limit without a number',
      shop({ key: 'a', limit: { unit: 'day' } }),
      ['/domains/0/descriptors/0/limit/requestsPerUnit is missing, expected a whole number from 0 to 4294967295'],
    ],
    [
      'a limit of nothing',
      shop({ key: 'a', limit: {} }),
      [
        '/domains/0/descriptors/0/limit is an object without properties, expected a limit such as { unit: ' +
          '"minute", requestsPerUnit: 60 }, { window: "30s", requestsPerUnit: 5 } or { unlimited: true }',
      ],
    ],
    [
      'an unknown unit',
      shop({ key: 'a', limit: { unit: 'MINUTE', requestsPerUnit: 1 } }),
      [
        '/domains/0/descriptors/0/limit/unit is "MINUTE", expected one of "second", "minute", "hour", "day", ' +
          '"week", "month", "year"; did you mean "minute"?',
      ],
    ],
    [
      'more requests than the protocol can say',
      shop({ key: 'a', limit: { unit: 'day', requestsPerUnit: 4_294_967_296 } }),
      ['/domains/0/descriptors/0/limit/requestsPerUnit is 4294967296, expected a whole number from 0 to 4294967295'],
    ],
    [
      'values that share a counter without a *',
      shop({ key: 'a', value: 'b', shareThreshold: true }),
      ['/domains/0/descriptors/0/shareThreshold is true, expected a "*" in "value": else there is nothing to share'],
    ],
    [
      'a limit that replaces itself',
      shop({ key: 'a', limit: { ...limit, name: 'n', replaces: ['m', 'n'] } }),
      ['/domains/0/descriptors/0/limit/replaces/1 is "n", expected the name of another limit, not its own'],
    ],
    [
      'a limit that replaces nothing',
      shop({ key: 'a', limit: { ...limit, replaces: [''] } }),
      ['/domains/0/descriptors/0/limit/replaces/0 is "", expected a non-empty string'],
    ],
    [
      'an unknown property of a descriptor',
      shop({ key: 'a', rate_limit: limit }),
      [
        '/domains/0/descriptors/0/rate_limit is an unknown property, expected only key, value, limit, descriptors, ' +
          'shadow, quota, shareThreshold, detailedMetric, valueToMetric, metadata',
      ],
    ],
  ])('%s', (_, value, expected) => {
    expect(told(checkRuleSet(value, { costFunctions: ['bytes', 'rows'] }))).toEqual(expected)
  })

  it('a cost function, when there are none', () => {
    expect(told(checkRuleSet(one({ cost: { function: 'tokens' } }), { costFunctions: [] }))).toEqual([
      '/rules/0/cost/function is "tokens", expected no function: none was given in code',
    ])
  })

  it('descriptors that have themselves below them', () => {
    const endless: { key: string; descriptors: unknown[] } = { key: 'a', descriptors: [] }
    endless.descriptors.push(endless)
    expect(checkRuleSet(shop(endless))).toMatchObject([{ received: 'nested too deep', expected: 'at most 64 levels' }])
  })
})

describe('a file', () => {
  const override = { dimension: 'user', entity: 'u1', resource: '/orders', terms: { limit: 5 } }
  const member = { dimension: 'tenant', entity: 'acme', tier: 'premium' }
  const file = (parts: object): unknown => ({
    rules: [orders],
    tiers: [{ name: 'premium' }, { name: 'free' }],
    ...parts,
  })

  it('may have overrides and members beside the rule set, and strings for instants', () => {
    const expiresAt = '2026-12-31T23:59:59+01:00'
    const parts = {
      $schema: './sluice.schema.json',
      version: 1,
      denyList: [{ name: 'a', match: { services: ['x'] }, expiresAt }],
      overrides: [
        { ...override, expiresAt },
        { ...override, resource: '*', expiresAt: 5 },
      ],
      members: [{ ...member, expiresAt }],
    }
    expect(checkRuleSetFile(file(parts))).toEqual([])
  })

  it.each<[string, object, string[]]>([
    ['of a later version', { version: 2 }, ['/version is 2, expected 1']],
    [
      'with an unknown tier',
      { members: [{ ...member, tier: 'gold' }] },
      ['/members/0/tier is "gold", expected one of premium, free'],
    ],
    [
      'with a member and no tiers',
      { members: [member], tiers: [] },
      ['/members/0/tier is "premium", expected a tier of "tiers": there are none'],
    ],
    [
      'with a member of two tiers',
      { members: [member, { ...member, tier: 'free' }] },
      ['/members/1 is for the same as /members/0, expected one tier for each caller'],
    ],
    [
      'with a member that cannot be one',
      { members: [{ ...member, dimension: 'ip' }] },
      ['/members/0/dimension is "ip", expected one of "user", "apiKey", "tenant"'],
    ],
    [
      'with two overrides for the same',
      { overrides: [override, { ...override, resource: '/ORDERS/' }] },
      ['/overrides/1 is for the same as /overrides/0, expected one override for each dimension, entity and resource'],
    ],
    [
      'with an override of a pattern that is none',
      { overrides: [{ ...override, resource: '/a*' }] },
      [expect.stringContaining('/overrides/0/resource is "/a*", expected a resource that can be matched') as string],
    ],
    [
      'with a day that does not exist',
      {
        overrides: [{ ...override, expiresAt: '2026-02-30' }],
        members: [{ ...member, expiresAt: '2026-02-30' }],
        denyList: [{ name: 'a', match: { services: ['x'] }, expiresAt: '2026-02-30' }],
      },
      [
        '/overrides/0/expiresAt is "2026-02-30", expected a day and time that exist',
        '/members/0/expiresAt is "2026-02-30", expected a day and time that exist',
        '/denyList/0/expiresAt is "2026-02-30", expected a day and time that exist',
      ],
    ],
    [
      'with a time without its zone',
      { overrides: [{ ...override, expiresAt: '2026-02-03T10:00' }] },
      [
        '/overrides/0/expiresAt is "2026-02-03T10:00", expected an instant such as "2026-12-31T23:59:59Z" (with ' +
          'its zone) or "2026-12-31" (0:00 UTC), or milliseconds since 1970',
      ],
    ],
  ])('%s is not taken', (_, parts, expected) => {
    expect(told(checkRuleSetFile(file(parts)))).toEqual(expected)
  })
})

describe('entries', () => {
  const override = { dimension: 'user', entity: 'u1', resource: '*', terms: { limit: 5 } }
  const block = { dimension: 'ip', entity: '10.0.0.1', until: 10, strikes: 1, forgottenAt: 20 }

  it.each<[string, (value: unknown) => readonly RuleSetProblem[], unknown]>([
    [
      'an override of the limit',
      checkOverride,
      { ...override, terms: { limit: 'off', window: '1s', burst: 4 }, expiresAt: 5 },
    ],
    ['an override of windows', checkOverride, { ...override, terms: { windows: [{ limit: 5, window: '1s' }] } }],
    ['an override by a multiplier', checkOverride, { ...override, dimension: 'a+b', terms: { multiplier: 0.5 } }],
    ['a membership', checkMembership, { dimension: 'apiKey', entity: 'k', tier: 'any' }],
    ['a block', checkBlock, { ...block, rule: 'login', reason: 'abuse' }],
    ['a block that is forgotten at once', checkBlock, { ...block, forgottenAt: 10 }],
    ['an incident', checkIncident, { active: true, until: 5 }],
  ])('%s can be used', (_, check, value) => {
    expect(check(value)).toEqual([])
  })

  it.each<[string, (value: unknown) => readonly RuleSetProblem[], unknown, string[]]>([
    [
      'no object',
      checkOverride,
      null,
      [
        ' is null, expected an override such as { dimension: "user", entity: "u1", resource: "*", terms: { limit: ' +
          '1000 } }',
      ],
    ],
    [
      'an override without an entity',
      checkOverride,
      { ...override, entity: '' },
      ['/entity is "", expected a string of 1 to 4096 characters'],
    ],
    [
      'an override by nothing',
      checkOverride,
      { ...override, terms: {} },
      ['/terms is an object without properties, expected one of limit (with window and burst), windows and multiplier'],
    ],
    [
      'an override by a window alone',
      checkOverride,
      { ...override, terms: { window: '1s' } },
      ['/terms is an object with window, expected one of limit (with window and burst), windows and multiplier'],
    ],
    [
      'an override by two things',
      checkOverride,
      { ...override, terms: { limit: 5, multiplier: 2 } },
      ['/terms/multiplier is 2, expected nothing beside "limit"'],
    ],
    [
      'an override with a string for its end',
      checkOverride,
      { ...override, expiresAt: '2026-12-31' },
      ['/expiresAt is "2026-12-31", expected milliseconds since 1970'],
    ],
    [
      'an override with a window of no length',
      checkOverride,
      { ...override, terms: { limit: 5, window: '0s' } },
      [expect.stringContaining('/terms/window is "0s", expected milliseconds above 0') as string],
    ],
    [
      'an override with two windows of one length',
      checkOverride,
      {
        ...override,
        terms: {
          windows: [
            { limit: 5, window: '1m' },
            { limit: 6, window: '60s' },
          ],
        },
      },
      ['/terms/windows is "60s", expected windows of different lengths'],
    ],
    [
      'an override of a dimension in another order',
      checkOverride,
      { ...override, dimension: 'user+ip' },
      ['/dimension is "user+ip", expected "ip+user", with the parts of the entity in the same order'],
    ],
    [
      'a membership without a tier',
      checkMembership,
      { dimension: 'user', entity: 'u' },
      ['/tier is missing, expected 1 to 64 letters, digits or any of _ . @ -, beginning with a letter or digit'],
    ],
    [
      'a block that is forgotten before it ends',
      checkBlock,
      { ...block, forgottenAt: 9 },
      ['/forgottenAt is 9, expected at least 10, which is "until"'],
    ],
    [
      'a block without strikes',
      checkBlock,
      { ...block, strikes: 0 },
      ['/strikes is 0, expected a whole number, 1 or more'],
    ],
    [
      'a block of a dimension that is none',
      checkBlock,
      { ...block, dimension: 'ip+ip' },
      ['/dimension is "ip+ip", expected each name once'],
    ],
    ['an incident that is not said to be one', checkIncident, {}, ['/active is missing, expected true or false']],
  ])('%s cannot be used', (_, check, value, expected) => {
    expect(told(check(value))).toEqual(expected)
  })
})

describe('checks as a whole', () => {
  it('tell all of 200 mistakes, in the order of the rule set', () => {
    const mistakes = [{ limit: -1 }, { resource: '/a*' }, { dimension: 'a+a' }, { window: '0s' }, { percent: 101 }]
    const wrong = Array.from({ length: 160 }, (_, index) => ({
      ...orders,
      name: `r${index}`,
      resource: `/r${index}`,
      ...mistakes[index % 5],
    }))
    const tiers = Array.from({ length: 40 }, (_, index) => ({ name: `t${index}`, multiplier: 0 }))
    const problems = checkRuleSet({ rules: wrong, tiers })
    expect(problems).toHaveLength(200)
    expect(problems.map(({ path }) => path.split('/').slice(1, 3).join(' '))).toEqual([
      ...wrong.map((_, index) => `rules ${index}`),
      ...tiers.map((_, index) => `tiers ${index}`),
    ])
  })

  it('tell what is wrong with a rule beside what is wrong with its form', () => {
    expect(
      told(checkRuleSet(one({ percent: 101, resource: '/a*', limt: 1, window: '0s' }))).map(
        (line) => line.split(' ')[0],
      ),
    ).toEqual(['/rules/0/percent', '/rules/0/limt', '/rules/0/resource', '/rules/0/window'])
  })

  it('take 10,000 rules, and find the one that is wrong', () => {
    const many = Array.from({ length: 10_000 }, (_, index) => ({ ...orders, resource: `/r${index}/:id` }))
    expect(checkRuleSet({ rules: many })).toEqual([])
    expect(checkRuleSet({ rules: [...many, { ...orders, resource: '/R9999/:name' }] })).toMatchObject([
      { path: '/rules/10000' },
    ])
  })

  it('never throw, whatever they are given', () => {
    const strange = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withSparseArray: true,
    })
    const ruleSets = fc.record(
      Object.fromEntries(
        [...Object.keys(WHOLE), 'overrides', 'members'].map((part) => [part, fc.oneof(strange, fc.array(strange))]),
      ),
    )
    const withStrange = fc
      .tuple(fc.constantFrom(...(['rules', 'tiers', 'exemptions', 'denyList', 'domains'] as const)), strange, strange)
      .map(([part, name, value]) => {
        const first = (WHOLE[part] ?? [])[0] as object
        return {
          ...WHOLE,
          [part]: [
            {
              ...first,
              ...Object.fromEntries(Object.keys(first).map((key) => [key, value])),
              [String(typeof name)]: name,
            },
          ],
        }
      })
    fc.assert(
      fc.property(fc.oneof(strange, ruleSets, withStrange), (value) => {
        for (const check of [
          checkRuleSet,
          checkRuleSetFile,
          checkOverride,
          checkMembership,
          checkBlock,
          checkIncident,
        ]) {
          expect(Array.isArray(check(value))).toBe(true)
        }
      }),
    )
  })

  it('are an error with all problems for who wants a rule set', () => {
    let error: unknown
    try {
      assertRuleSet(one({ limit: -1, resource: '' }), { source: 'sluice.yaml' })
    } catch (thrown) {
      error = thrown
    }
    expect(isSluiceError(error, 'SLUICE_INVALID_RULE_SET')).toBe(true)
    expect((error as RuleSetError).problems.map(({ path }) => path)).toEqual(['/rules/0/resource', '/rules/0/limit'])
    expect((error as RuleSetError).message).toContain('sluice.yaml has 2 problems: /rules/0/resource is ""')
  })
})
