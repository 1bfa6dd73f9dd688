import type { DecisionLike } from './decision-like.ts'
import { wholeSeconds } from './whole-seconds.ts'

/**
 * The widely used `X-RateLimit-*` headers for `decision`, and `Retry-After` and `Cache-Control: no-store` when it refuses
 * (RFC 6585: a 429 must not be stored). `nowMs` is the time of the answer, milliseconds since 1970.
 *
 * All times are whole seconds, rounded up, so that nobody is sent back too early: `X-RateLimit-Reset` since 1970,
 * `X-RateLimit-Reset-After` and `Retry-After` from now. There is no `Retry-After` where waiting does not help, and no
 * `X-RateLimit-*` where nothing limits the call.
 */
export function legacyRateLimitHeaders(decision: DecisionLike, nowMs: number): Record<string, string> {
  const { allowed, limit, remaining, resetAt, retryAfterMs } = decision
  const headers: Record<string, string> = {}
  if (Number.isFinite(limit)) {
    headers['X-RateLimit-Limit'] = String(limit)
    headers['X-RateLimit-Remaining'] = String(remaining)
  }
  if (Number.isFinite(limit) && Number.isFinite(resetAt)) {
    headers['X-RateLimit-Reset'] = String(wholeSeconds(resetAt))
    headers['X-RateLimit-Reset-After'] = String(wholeSeconds(resetAt - nowMs))
  }
  if (allowed) return headers
  if (Number.isFinite(retryAfterMs)) headers['Retry-After'] = String(wholeSeconds(retryAfterMs))
  headers['Cache-Control'] = 'no-store'
  return headers
}
