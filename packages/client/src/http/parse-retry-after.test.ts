import type { DecisionLike } from '@sluice/contract'
import { rateLimitHeaders } from '@sluice/contract'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { retryAfterMsOf } from './parse-retry-after.ts'

const NOW = Date.UTC(2026, 10, 16, 12)
const IN_A_MINUTE = new Date(NOW + 60_000).toUTCString()
const SENDER_CLOCK = new Date(NOW - 3_600_000).toUTCString()
const EPOCH_SECONDS = String(NOW / 1000 + 30)

function waitOf(headers: Record<string, string>, status = 200): number | undefined {
  return retryAfterMsOf(new Response(null, { status, headers }), NOW)
}

describe('the wait that an answer announces', () => {
  it.each([
    ['seconds', { 'Retry-After': '120' }, 120_000],
    ['no seconds', { 'Retry-After': '0' }, 0],
    ['a date', { 'Retry-After': IN_A_MINUTE }, 60_000],
    ['a date that has passed', { 'Retry-After': SENDER_CLOCK }, 0],
    [
      'a date of a clock that is an hour late',
      { 'Retry-After': new Date(NOW - 3_590_000).toUTCString(), Date: SENDER_CLOCK },
      10_000,
    ],
    ['something invalid', { 'Retry-After': 'soon' }, undefined],
    ['a number below 0', { 'Retry-After': '-5' }, undefined],
    ['Retry-After before all others', { 'Retry-After': '1', RateLimit: '"a";r=0;t=9' }, 1000],
    ['a quota that is used up', { RateLimit: '"burst";r=5;t=10, "daily";r=0;t=3600' }, 3_600_000],
    ['the longest of several', { RateLimit: '"a";r=0;t=7, "b";r=0;t=5' }, 7000],
    ['a quota that is not used up', { RateLimit: '"a";r=1;t=7' }, undefined],
    ['a quota without a reset', { RateLimit: '"a";r=0' }, undefined],
    ['a malformed field, which counts as not sent', { RateLimit: '"a";r=0;t=7,' }, undefined],
    ['a name that is no string', { RateLimit: 'a;r=0;t=7' }, undefined],
    ['a number below 0 in a field', { RateLimit: '"a";r=0;t=-7' }, undefined],
    ['what is left that is no number', { RateLimit: '"a";r="0";t=7' }, undefined],
    [
      'the older headers in the place of a malformed field',
      { RateLimit: '(', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset-After': '4' },
      4000,
    ],
    [
      'a field before the older headers',
      { RateLimit: '"a";r=3;t=7', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '4' },
      undefined,
    ],
    ['seconds after which', { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset-After': '1.25' }, 1250],
    ['seconds under the name of an instant', { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '90' }, 90_000],
    ['an instant in seconds', { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': EPOCH_SECONDS }, 30_000],
    ['an instant in milliseconds', { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': String(NOW + 1500) }, 1500],
    ['an instant that has passed', { 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '1700000000' }, 0],
    ['something left', { 'X-RateLimit-Remaining': '1', 'X-RateLimit-Reset-After': '4' }, undefined],
    ['not what is left', { 'X-RateLimit-Reset-After': '4' }, undefined],
    ['the headers of the first drafts', { 'RateLimit-Remaining': '0', 'RateLimit-Reset': '12' }, 12_000],
    ['an answer out of a cache', { RateLimit: '"a";r=0;t=7', Age: '3' }, undefined],
    ['nothing', {}, undefined],
  ])('by %s', (_, headers, waitMs) => {
    expect(waitOf(headers as Record<string, string>)).toBe(waitMs)
  })

  it('does not need to say that nothing is left where it denies', () => {
    expect(waitOf({ 'X-RateLimit-Reset-After': '4' }, 429)).toBe(4000)
    expect(waitOf({ 'X-RateLimit-Remaining': '2', 'X-RateLimit-Reset-After': '4' }, 429)).toBeUndefined()
  })

  it('is what the service meant, by whichever headers', () => {
    const profile = fc.constantFrom('legacy', 'draft-11', 'both' as const)
    fc.assert(
      fc.property(profile, fc.integer({ min: 1, max: 1e6 }), fc.boolean(), (headers, seconds, allowed) => {
        const decision: DecisionLike = {
          allowed,
          reason: allowed ? 'allowed' : 'limit',
          rule: 'per "user", 100%',
          limit: 10,
          remaining: 0,
          resetAt: NOW + seconds * 1000,
          retryAfterMs: allowed ? 0 : seconds * 1000,
        }
        const written = rateLimitHeaders(decision, NOW, { profile: headers as 'both' })
        expect(waitOf(written, allowed ? 200 : 429)).toBe(seconds * 1000)
      }),
    )
  })
})
