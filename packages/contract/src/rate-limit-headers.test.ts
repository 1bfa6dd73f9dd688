import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { DecisionLike } from './decision-like.ts'
import { legacyRateLimitHeaders } from './rate-limit-headers.ts'

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
