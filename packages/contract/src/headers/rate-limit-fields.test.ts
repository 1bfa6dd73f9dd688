import fc from 'fast-check'
import type { Item } from 'structured-headers'
import { parseList } from 'structured-headers'
import { describe, expect, it } from 'vitest'
import type { DecisionLike, LimitReportLike } from '../checks/decision.ts'
import { rateLimitFields } from './rate-limit-fields.ts'

const NOW_MS = 1_699_180_755_000
const LARGEST_INTEGER = 999_999_999_999_999

const ONE: DecisionLike = {
  allowed: true,
  reason: 'allowed',
  rule: 'default',
  limit: 1000,
  remaining: 523,
  resetAt: 1_699_180_800_000,
  retryAfterMs: 0,
}

function report(rule: string, parts: Partial<LimitReportLike> = {}): LimitReportLike {
  return { rule, limit: 100, remaining: 50, resetAt: NOW_MS + 30_000, retryAfterMs: 0, windowMs: 60_000, ...parts }
}

describe('rateLimitFields', () => {
  it('tells the limit of a decision that has only one', () => {
    expect(rateLimitFields(ONE, NOW_MS)).toEqual({ rateLimit: '"default";r=523;t=45', policy: '"default";q=1000' })
  })

  it('tells every limit that was decided', () => {
    const limits = [report('burst'), report('daily', { limit: 1000, remaining: 999, windowMs: 86_400_000 })]
    expect(rateLimitFields({ ...ONE, limits }, NOW_MS)).toEqual({
      rateLimit: '"burst";r=50;t=30, "daily";r=999;t=30',
      policy: '"burst";q=100;w=60, "daily";q=1000;w=86400',
    })
  })

  it('tells what is counted and whose quota it is', () => {
    const limits = [
      report('slots', { quotaUnit: 'concurrent-requests', partitionKey: Uint8Array.of(1, 2, 3, 255) }),
      report('calls', { quotaUnit: 'requests' }),
    ]
    expect(rateLimitFields({ ...ONE, limits }, NOW_MS)).toEqual({
      rateLimit: '"slots";r=50;t=30;pk=:AQID/w==:, "calls";r=50;t=30',
      policy: '"slots";q=100;qu="concurrent-requests";w=60;pk=:AQID/w==:, "calls";q=100;w=60',
    })
  })

  it('tells the windows of one rule apart', () => {
    const limits = [
      report('api', { windowMs: 1000 }),
      report('api', { windowMs: 250 }),
      report('api:1s'),
      report('other'),
    ]
    expect(rateLimitFields({ ...ONE, limits }, NOW_MS)?.policy).toBe(
      '"api:1s";q=100;w=1, "api:250ms";q=100;w=1, "api:1s:2";q=100;w=60, "other";q=100;w=60',
    )
  })

  it('on a refusal says when to come back, under the limits that refuse and no others', () => {
    const limits = [
      report('second', { remaining: 0, retryAfterMs: 1001, resetAt: NOW_MS + 60_000 }),
      report('day', { resetAt: NOW_MS + 80_000_000 }),
      report('never', { remaining: 3, retryAfterMs: Number.POSITIVE_INFINITY }),
    ]
    const refused: DecisionLike = { ...ONE, allowed: false, reason: 'limit', retryAfterMs: 1001, limits }
    expect(rateLimitFields(refused, NOW_MS)?.rateLimit).toBe('"second";r=0;t=2, "day";r=50, "never";r=3')
  })

  it.each([
    ['unlimited', { reason: 'unlimited', rule: '', limit: Number.POSITIVE_INFINITY }],
    ['exempt', { reason: 'exempt', limit: Number.POSITIVE_INFINITY }],
    ['denied', { allowed: false, reason: 'denied', limit: 0, remaining: 0 }],
    ['blocked without a limit', { allowed: false, reason: 'blocked', limit: 0, remaining: 0 }],
  ] as const)('says nothing about what is %s', (_title, parts) => {
    expect(rateLimitFields({ ...ONE, limits: [], ...parts }, NOW_MS)).toBeUndefined()
  })

  it('tells the limit of a key that is blocked under it', () => {
    const blocked: DecisionLike = { ...ONE, allowed: false, reason: 'blocked', remaining: 0, retryAfterMs: 5000 }
    expect(rateLimitFields(blocked, NOW_MS)).toEqual({ rateLimit: '"default";r=0;t=5', policy: '"default";q=1000' })
  })

  it('says nothing about limits that do not limit', () => {
    const limits = [report('off', { limit: Number.POSITIVE_INFINITY }), report('on')]
    expect(rateLimitFields({ ...ONE, limits }, NOW_MS)?.policy).toBe('"on";q=100;w=60')
  })

  it('names a bounded number of limits, those that refuse among them', () => {
    const limits = Array.from({ length: 40 }, (_, index) => report(`r${index}`, { retryAfterMs: index === 39 ? 1 : 0 }))
    const fields = rateLimitFields({ ...ONE, allowed: false, reason: 'limit', limits }, NOW_MS)
    const names = parseList(fields?.rateLimit ?? '').map(([name]) => name)
    expect(names).toHaveLength(16)
    expect(names).toContain('r39')
  })
})

const anyName = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.constantFrom('api', 'api:60s', 'api:2', 'api:60s:2', '"', '\\', '";r=9', '\n', '\u0000', 'x'.repeat(400)),
)
const anyCount = fc.oneof(fc.nat(), fc.double({ min: 0, max: 1e22, noNaN: true }), fc.constant(Number.MAX_VALUE))
const anyReport: fc.Arbitrary<LimitReportLike> = fc.record(
  {
    rule: anyName,
    limit: fc.oneof(anyCount, fc.constant(Number.POSITIVE_INFINITY)),
    remaining: anyCount,
    resetAt: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 4_000_000_000_000 })),
    retryAfterMs: fc.oneof(fc.constant(0), fc.nat(), fc.constant(Number.POSITIVE_INFINITY)),
    windowMs: fc.oneof(fc.constant(60_000), fc.double({ min: 0, max: 1e13, noNaN: true })),
    quotaUnit: anyName,
    partitionKey: fc.uint8Array({ maxLength: 33 }),
  },
  { requiredKeys: ['rule', 'limit', 'remaining', 'resetAt', 'retryAfterMs'] },
)

describe('the fields of any decision', () => {
  it('property: are read by an independent parser, name by name and number by number', () => {
    fc.assert(
      fc.property(fc.array(anyReport, { maxLength: 12 }), fc.boolean(), (limits, allowed) => {
        const decision: DecisionLike = { ...ONE, limit: Number.POSITIVE_INFINITY, allowed, limits }
        const fields = rateLimitFields(decision, NOW_MS)
        const announced = limits.filter(({ limit }) => Number.isFinite(limit))
        expect(fields === undefined).toBe(announced.length === 0)
        if (fields === undefined) return
        expect(`${fields.rateLimit}${fields.policy}`).toMatch(/^[ -~]+$/)
        const state = parseList(fields.rateLimit) as Item[]
        const policies = parseList(fields.policy) as Item[]
        expect(state.map(([name]) => name)).toEqual(policies.map(([name]) => name))
        expect(new Set(state.map(([name]) => name)).size).toBe(announced.length)
        for (const [index, { limit, remaining, windowMs = 0, quotaUnit }] of announced.entries()) {
          const [, left] = state[index]!
          const [, policy] = policies[index]!
          expect(left.get('r')).toBe(Math.min(Math.floor(remaining!), LARGEST_INTEGER))
          expect(policy.get('q')).toBe(Math.min(Math.floor(limit), LARGEST_INTEGER))
          expect(policy.get('w')).toBe(windowMs > 0 ? Math.ceil(windowMs / 1000) : undefined)
          expect(policy.has('qu')).toBe(quotaUnit !== undefined && quotaUnit !== 'requests')
          expect(left.get('pk')).toEqual(policy.get('pk'))
        }
      }),
    )
  })
})
