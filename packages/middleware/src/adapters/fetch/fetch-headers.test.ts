import { expect, it } from 'vitest'
import type { Denial } from '../../http/denial-response.ts'
import type { HttpOutcome } from '../../http/request-outcome.ts'
import { rememberHeaders, withRememberedHeaders } from './fetch-headers.ts'

function allowed(headers: Record<string, string>): HttpOutcome {
  return { allowed: true, decision: undefined, headers, delayMs: 0, finish: undefined }
}

function denied(headers: Record<string, string>): Denial {
  const decision = {
    allowed: false,
    reason: 'limit',
    rule: 'default',
    limit: 1,
    remaining: 0,
    resetAt: 0,
    retryAfterMs: 1,
  } as const
  return { allowed: false, decision, status: 429, headers, body: '{}' }
}

it('sets what was remembered for the request, and nothing of another', () => {
  const context = {}
  rememberHeaders(context, allowed({ 'X-RateLimit-Limit': '3' }))
  expect(withRememberedHeaders(context, new Response()).headers.get('x-ratelimit-limit')).toBe('3')
  expect(withRememberedHeaders({}, new Response()).headers.get('x-ratelimit-limit')).toBeNull()
})

it('announces the limiter that decided last', () => {
  const context = {}
  rememberHeaders(context, allowed({ 'X-RateLimit-Remaining': '9', 'RateLimit-Policy': '"outer"' }))
  rememberHeaders(context, allowed({ 'X-RateLimit-Remaining': '2' }))
  const { headers } = withRememberedHeaders(context, withRememberedHeaders(context, new Response()))
  expect([headers.get('x-ratelimit-remaining'), headers.get('ratelimit-policy')]).toEqual(['2', '"outer"'])
})

it('leaves what an answer in place of the usual denial has set', () => {
  const context = {}
  rememberHeaders(context, allowed({ 'X-RateLimit-Remaining': '9' }))
  rememberHeaders(
    context,
    denied({ 'X-RateLimit-Remaining': '0', 'Retry-After': '7', 'Content-Type': 'application/problem+json' }),
  )
  const own = new Response(null, { status: 303, headers: { 'Retry-After': '60' } })
  const { headers } = withRememberedHeaders(context, own)
  expect(Object.fromEntries(headers)).toEqual({ 'retry-after': '60', 'x-ratelimit-remaining': '0' })
})

it('copies a response whose headers cannot be changed', () => {
  const context = {}
  rememberHeaders(context, allowed({ 'X-RateLimit-Limit': '3' }))
  const redirect = Response.redirect('http://localhost/elsewhere', 307)
  // Runtimes differ in which headers they fix.
  const fail = (): never => {
    throw new TypeError('immutable')
  }
  Object.defineProperty(redirect.headers, 'set', { value: fail })
  const response = withRememberedHeaders(context, redirect)
  expect([response.status, response.headers.get('location'), response.headers.get('x-ratelimit-limit')]).toEqual([
    307,
    'http://localhost/elsewhere',
    '3',
  ])
})

it('passes on a failure as it is', () => {
  const context = {}
  rememberHeaders(context, allowed({ 'X-RateLimit-Limit': '3' }))
  const failure = Response.error()
  expect(withRememberedHeaders(context, failure)).toBe(failure)
})
