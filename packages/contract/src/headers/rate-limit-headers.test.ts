import fc from 'fast-check'
import type { Item } from 'structured-headers'
import { parseList } from 'structured-headers'
import { describe, expect, it } from 'vitest'
import type { DecisionLike, LimitReportLike } from '../checks/decision.ts'
import { HEADER_PROFILES, legacyRateLimitHeaders, rateLimitHeaders } from './rate-limit-headers.ts'

const NOW_MS = 1_699_180_755_000

const ALLOWED: DecisionLike = {
  allowed: true,
  reason: 'allowed',
  rule: 'default',
  limit: 1000,
  remaining: 523,
  resetAt: 1_699_180_800_000,
  retryAfterMs: 0,
}

const DENIED: DecisionLike = { ...ALLOWED, allowed: false, reason: 'limit', remaining: 0, retryAfterMs: 44_001 }

describe('legacyRateLimitHeaders', () => {
  it('tells limit, remaining and reset of an allowed call', () => {
    expect(legacyRateLimitHeaders(ALLOWED, NOW_MS)).toEqual({
      'X-RateLimit-Limit': '1000',
      'X-RateLimit-Remaining': '523',
      'X-RateLimit-Reset': '1699180800',
      'X-RateLimit-Reset-After': '45',
    })
  })

  it('adds when to retry, and forbids storing, on a refusal', () => {
    expect(legacyRateLimitHeaders(DENIED, NOW_MS)).toEqual({
      'X-RateLimit-Limit': '1000',
      'X-RateLimit-Remaining': '0',
      'X-RateLimit-Reset': '1699180800',
      'X-RateLimit-Reset-After': '45',
      'Retry-After': '45',
      'Cache-Control': 'no-store',
    })
  })

  it('does not tell to retry where waiting does not help', () => {
    const headers = legacyRateLimitHeaders({ ...DENIED, retryAfterMs: Number.POSITIVE_INFINITY }, NOW_MS)
    expect(headers).not.toHaveProperty('Retry-After')
    expect(headers['Cache-Control']).toBe('no-store')
  })

  it('says nothing where nothing limits the call', () => {
    const unlimited = { ...ALLOWED, limit: Number.POSITIVE_INFINITY, remaining: Number.POSITIVE_INFINITY, resetAt: 0 }
    expect(legacyRateLimitHeaders(unlimited, NOW_MS)).toEqual({})
  })

  it('leaves out what is unknown, and keeps the limit', () => {
    expect(legacyRateLimitHeaders({ ...ALLOWED, remaining: null, resetAt: 0 }, NOW_MS)).toEqual({
      'X-RateLimit-Limit': '1000',
    })
  })

  it('counts a reset that has passed as now', () => {
    expect(legacyRateLimitHeaders({ ...ALLOWED, resetAt: NOW_MS - 1 }, NOW_MS)['X-RateLimit-Reset-After']).toBe('0')
  })

  it('property: times are whole seconds, never early and less than a second late', () => {
    const ms = fc.integer({ min: 1, max: 4_000_000_000_000 })
    fc.assert(
      fc.property(ms, ms, ms, (nowMs, resetAfterMs, retryAfterMs) => {
        const resetAt = nowMs + resetAfterMs
        const headers = legacyRateLimitHeaders({ ...DENIED, resetAt, retryAfterMs }, nowMs)
        const pairs: [string, number][] = [
          ['X-RateLimit-Reset', resetAt],
          ['X-RateLimit-Reset-After', resetAfterMs],
          ['Retry-After', retryAfterMs],
        ]
        for (const [name, truthMs] of pairs) {
          expect(headers[name]).toMatch(/^\d+$/)
          const lateMs = Number(headers[name]) * 1000 - truthMs
          expect(lateMs).toBeGreaterThanOrEqual(0)
          expect(lateMs).toBeLessThan(1000)
        }
      }),
    )
  })
})

describe('rateLimitHeaders', () => {
  const limits: readonly LimitReportLike[] = [{ ...DENIED, rule: 'api', windowMs: 60_000 }]
  const refused: DecisionLike = { ...DENIED, limits }
  const fields = { RateLimit: '"api";r=0;t=45', 'RateLimit-Policy': '"api";q=1000;w=60' }
  const legacy = legacyRateLimitHeaders(refused, NOW_MS)

  it.each([
    ['legacy', legacy],
    ['draft-11', { ...fields, 'Retry-After': '45', 'Cache-Control': 'no-store' }],
    ['both', { ...legacy, ...fields }],
    ['off', { 'Retry-After': '45', 'Cache-Control': 'no-store' }],
  ] as const)('announces a refusal by the profile %s', (profile, headers) => {
    expect(rateLimitHeaders(refused, NOW_MS, { profile })).toEqual(headers)
  })

  it('announces the policy alone when what is left is unknown', () => {
    const unknown = { ...ALLOWED, remaining: null, resetAt: 0 }
    expect(rateLimitHeaders(unknown, NOW_MS, { profile: 'both' })).toEqual({
      'X-RateLimit-Limit': '1000',
      'RateLimit-Policy': '"default";q=1000',
    })
    const known = { rule: 'known', limit: 5, remaining: 4, resetAt: NOW_MS + 1000, retryAfterMs: 0 }
    const reports = [known, { ...unknown, rule: 'unknown' }]
    expect(rateLimitHeaders({ ...unknown, limits: reports }, NOW_MS, { profile: 'draft-11' })).toEqual({
      RateLimit: '"known";r=4;t=1',
      'RateLimit-Policy': '"known";q=5, "unknown";q=1000',
    })
  })

  it('says nothing by the profile off about what is allowed', () => {
    expect(rateLimitHeaders(ALLOWED, NOW_MS, { profile: 'off' })).toEqual({})
  })

  it.each(HEADER_PROFILES)('says nothing by the profile %s where nothing limits the call', (profile) => {
    const unlimited = { ...ALLOWED, limit: Number.POSITIVE_INFINITY, remaining: Number.POSITIVE_INFINITY, resetAt: 0 }
    expect(rateLimitHeaders(unlimited, NOW_MS, { profile })).toEqual({})
  })

  it('says nothing of limits that callers are not told of, but how long to wait', () => {
    const told = { rule: 'told', limit: 5, remaining: 4, resetAt: NOW_MS + 1000, retryAfterMs: 0 }
    const hidden = { ...told, rule: 'hidden', remaining: 0, announce: false }
    expect(rateLimitHeaders({ ...ALLOWED, ...hidden, limits: [] }, NOW_MS, { profile: 'both' })).toEqual({})
    expect(rateLimitHeaders({ ...ALLOWED, ...hidden, limits: [hidden] }, NOW_MS, { profile: 'both' })).toEqual({})
    const denied: DecisionLike = { ...DENIED, announce: false, limits: [told, { ...hidden, retryAfterMs: 44_001 }] }
    expect(rateLimitHeaders(denied, NOW_MS, { profile: 'both' })).toEqual({
      RateLimit: '"told";r=4',
      'RateLimit-Policy': '"told";q=5',
      'Retry-After': '45',
      'Cache-Control': 'no-store',
    })
    expect(rateLimitHeaders({ ...denied, limits: [] }, NOW_MS, { profile: 'both' })).toEqual({
      'Retry-After': '45',
      'Cache-Control': 'no-store',
    })
  })

  it('adds jitter to the wait, and to nothing else', () => {
    const headers = rateLimitHeaders(refused, NOW_MS, { profile: 'both', jitter: 0.25 })
    // 44.001 s and a quarter of it.
    expect(headers).toEqual({ ...legacy, ...fields, 'Retry-After': '56' })
  })

  it.each([-0.5, Number.NaN, 0])('adds nothing for a jitter of %d', (jitter) => {
    expect(rateLimitHeaders(refused, NOW_MS, { profile: 'legacy', jitter })).toEqual(legacy)
  })

  it('says no instant where there is none', () => {
    const denied: DecisionLike = { ...DENIED, reason: 'denied', limit: 0, resetAt: 0, limits: [] }
    expect(rateLimitHeaders(denied, NOW_MS, { profile: 'both' })).toEqual({
      'X-RateLimit-Limit': '0',
      'X-RateLimit-Remaining': '0',
      'Retry-After': '45',
      'Cache-Control': 'no-store',
    })
  })

  it('property: Retry-After is digits, never before the truth, and never before any t', () => {
    const waits = fc.array(fc.oneof(fc.constant(0), fc.nat(), fc.double({ min: 0, max: 1e30, noNaN: true })), {
      minLength: 1,
      maxLength: 8,
    })
    const jitters = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
    fc.assert(
      fc.property(waits, jitters, (waitsMs, jitter) => {
        const reports = waitsMs.map((retryAfterMs, index) => ({ ...DENIED, rule: `r${index}`, retryAfterMs }))
        const decision = { ...DENIED, retryAfterMs: Math.max(...waitsMs), limits: reports }
        const headers = rateLimitHeaders(decision, NOW_MS, { profile: 'draft-11', jitter })
        expect(headers['Retry-After']).toMatch(/^\d{1,15}$/)
        const seconds = Number(headers['Retry-After'])
        expect(seconds).toBeGreaterThanOrEqual(Math.min(decision.retryAfterMs / 1000, 999_999_999_999_999))
        for (const [, parameters] of parseList(headers['RateLimit'] ?? '') as Item[]) {
          expect(Number(parameters.get('t') ?? 0)).toBeLessThanOrEqual(seconds)
        }
        expect(headers['Cache-Control']).toBe('no-store')
      }),
    )
  })
})
