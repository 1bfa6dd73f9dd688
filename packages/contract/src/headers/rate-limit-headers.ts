import type { DecisionLike } from '../checks/decision.ts'
import { wholeSeconds } from '../checks/decision.ts'
import { rateLimitFields } from './rate-limit-fields.ts'

/**
 * Which headers announce a limit. `legacy`: the widely used `X-RateLimit-*`. `draft-11`: `RateLimit` and
 * `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-11, a draft that may still change. `both`, or `off` for
 * neither.
 */
export type HeaderProfile = (typeof HEADER_PROFILES)[number]

/** Every {@link HeaderProfile}. */
export const HEADER_PROFILES = ['legacy', 'draft-11', 'both', 'off'] as const

/** How limits are announced. */
export interface RateLimitHeaderOptions {
  readonly profile: HeaderProfile
  /**
   * Adds up to this share of the wait to `Retry-After`, at random for each answer, 0 or more and below 1, so that
   * callers that were denied together do not retry together. 0.25 makes up to 75 s of 60 s. Default: 0. It never
   * shortens the wait.
   */
  readonly jitter?: number
}

/** Maximum wait in a header. Larger numbers would not be written as digits alone. */
const LONGEST_WAIT_SECONDS = 999_999_999_999_999

/**
 * The headers for `decision` by a profile. With every profile, a denial has `Retry-After` (where waiting helps) and
 * `Cache-Control: no-store` (RFC 6585). `nowMs`: time of the answer, milliseconds since 1970. All times are whole
 * seconds, rounded up, so that no client retries too early.
 */
export function rateLimitHeaders(
  decision: DecisionLike,
  nowMs: number,
  { profile, jitter = 0 }: RateLimitHeaderOptions,
): Record<string, string> {
  const headers: Record<string, string> = {}
  if (profile === 'legacy' || profile === 'both') addLegacy(headers, decision, nowMs)
  if (profile === 'draft-11' || profile === 'both') addFields(headers, decision, nowMs)
  if (!decision.allowed) addDenial(headers, decision.retryAfterMs, jitter)
  return headers
}

/**
 * The widely used `X-RateLimit-*` headers for `decision`, and `Retry-After` and `Cache-Control: no-store` if it denies:
 * {@link rateLimitHeaders} with the profile `legacy`.
 *
 * `X-RateLimit-Reset` is in seconds since 1970, `X-RateLimit-Reset-After` and `Retry-After` from now. Without
 * `Retry-After`, waiting does not help; without `X-RateLimit-*`, nothing limits the call. Unknown values are omitted.
 */
export function legacyRateLimitHeaders(decision: DecisionLike, nowMs: number): Record<string, string> {
  const headers: Record<string, string> = {}
  addLegacy(headers, decision, nowMs)
  if (!decision.allowed) addDenial(headers, decision.retryAfterMs, 0)
  return headers
}

function addLegacy(headers: Record<string, string>, decision: DecisionLike, nowMs: number): void {
  const { limit, remaining, resetAt, announce } = decision
  if (announce === false || !Number.isFinite(limit)) return
  headers['X-RateLimit-Limit'] = String(limit)
  if (remaining !== null) headers['X-RateLimit-Remaining'] = String(remaining)
  if (!(resetAt > 0) || !Number.isFinite(resetAt)) return
  headers['X-RateLimit-Reset'] = String(wholeSeconds(resetAt))
  headers['X-RateLimit-Reset-After'] = String(wholeSeconds(resetAt - nowMs))
}

function addFields(headers: Record<string, string>, decision: DecisionLike, nowMs: number): void {
  const fields = rateLimitFields(decision, nowMs)
  if (fields === undefined) return
  if (fields.rateLimit !== '') headers['RateLimit'] = fields.rateLimit
  headers['RateLimit-Policy'] = fields.policy
}

function addDenial(headers: Record<string, string>, retryAfterMs: number, jitter: number): void {
  if (Number.isFinite(retryAfterMs)) {
    const spreadMs = jitter > 0 ? retryAfterMs * jitter : 0
    headers['Retry-After'] = String(Math.min(wholeSeconds(retryAfterMs + spreadMs), LONGEST_WAIT_SECONDS))
  }
  headers['Cache-Control'] = 'no-store'
}
