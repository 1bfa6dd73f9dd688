import type { CheckRequest, RuleSet } from '@sluice/contract'

/** The rules of the demo: an online shop with an API for partners. */
export const DEMO_RULES: RuleSet = {
  rules: [
    { resource: '/api/v1/orders', dimension: 'user', limit: 40, window: '1m', burst: 12 },
    { resource: '/api/v1/orders/:id', dimension: 'user', limit: 240, window: '1m' },
    { resource: '/api/v1/search', dimension: 'user', algorithm: 'token-bucket', capacity: 15, refillPerSecond: 0.6 },
    { resource: '/api/v1/search', dimension: 'ip', limit: 300, window: '1m' },
    {
      resource: '/api/v1/products/:id',
      dimension: 'apiKey',
      limit: 900,
      window: '1m',
      regions: { EU: 1, US: 1.5, APAC: 0.5 },
    },
    { resource: '/api/v1/export', dimension: 'tenant', algorithm: 'fixed-window', limit: 30, window: '1m' },
    { resource: '/api/v1/payments', dimension: 'user', algorithm: 'sliding-window-log', limit: 12, window: '1m' },
    {
      resource: '/api/v1/inventory',
      dimension: 'service',
      algorithm: 'sliding-window-counter',
      limit: 1800,
      window: '1m',
    },
    { resource: '/api/v1/reviews', dimension: 'user', limit: 20, window: '1m' },
    { resource: '/login', dimension: 'ip', limit: 20, window: '1m', name: 'login-by-address' },
    { resource: '/*', dimension: 'ip', limit: 3000, window: '1m', name: 'any-by-address' },
  ],
  tiers: [{ name: 'partner', multiplier: 3 }],
}

/** What the next version would be: stricter for searches and orders. It is measured beside the rules. */
export const DEMO_CANDIDATE: RuleSet = {
  ...DEMO_RULES,
  rules: DEMO_RULES.rules!.map((rule) => {
    if (rule.resource === '/api/v1/orders') return { ...rule, limit: 20, burst: 6 }
    if (rule.algorithm === 'token-bucket') return { ...rule, capacity: 8, refillPerSecond: 0.3 }
    return rule
  }),
}

/** A kind of call, how often it comes, and who makes it. */
interface Stream {
  /** Calls per second. */
  readonly perSecond: number
  readonly request: (draw: Draw) => CheckRequest
}

/** Draws a whole number from 0 up to, but not including, `count`; low numbers come more often. */
export type Draw = (count: number) => number

const REGIONS = ['EU', 'EU', 'EU', 'US', 'US', 'APAC'] as const

function user(draw: Draw): Pick<CheckRequest, 'user' | 'ip' | 'region'> {
  const number = draw(180)
  const region = REGIONS[number % REGIONS.length] ?? 'EU'
  return { user: `user-${1000 + number}`, ip: `198.51.100.${number + 1}`, region }
}

/** The traffic of the demo: many callers within their limits, and a few that are not. */
export const DEMO_STREAMS: readonly Stream[] = [
  { perSecond: 46, request: (draw) => ({ ...user(draw), resource: '/api/v1/search', method: 'GET' }) },
  { perSecond: 40, request: (draw) => ({ ...user(draw), resource: `/api/v1/orders/${draw(900)}`, method: 'GET' }) },
  { perSecond: 22, request: (draw) => ({ ...user(draw), resource: '/api/v1/orders', method: 'POST' }) },
  { perSecond: 14, request: (draw) => ({ ...user(draw), resource: '/api/v1/reviews', method: 'POST' }) },
  { perSecond: 9, request: (draw) => ({ ...user(draw), resource: '/api/v1/payments', method: 'POST' }) },
  { perSecond: 60, request: (draw) => partnerCall(draw) },
  {
    perSecond: 26,
    request: (draw) => ({ service: `warehouse-${draw(3)}`, resource: '/api/v1/inventory', region: 'EU' }),
  },
  { perSecond: 3, request: (draw) => ({ tenant: `tenant-${draw(4)}`, resource: '/api/v1/export', region: 'US' }) },
  // Somebody tries passwords from a few addresses.
  {
    perSecond: 5,
    request: (draw) => ({ ip: `203.0.113.${66 + draw(4)}`, resource: '/login', method: 'POST', region: 'APAC' }),
  },
]

function partnerCall(draw: Draw): CheckRequest {
  const number = draw(6)
  return { apiKey: `partner-${number + 1}`, resource: `/api/v1/products/${draw(4000)}`, method: 'GET', region: 'US' }
}
