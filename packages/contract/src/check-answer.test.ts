import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkAnswer, checkAnswerJson } from './check-answer.ts'
import type { DecisionLike } from './decision-like.ts'

const ALLOWED: DecisionLike = {
  allowed: true,
  reason: 'allowed',
  rule: 'default',
  limit: 1000,
  remaining: 523,
  resetAt: Date.UTC(2025, 10, 5, 10, 5),
  retryAfterMs: 0,
}

describe('checkAnswer', () => {
  it('tells an allowed call', () => {
    expect(checkAnswer(ALLOWED, 'user')).toEqual({
      allowed: true,
      reason: 'allowed',
      limit: 1000,
      remaining: 523,
      resetAt: '2025-11-05T10:05:00Z',
      retryAfter: null,
      dimension: 'user',
      rule: 'default',
    })
  })

  it.each([
    [1, 1],
    [999, 1],
    [1000, 1],
    [1001, 2],
    [44_001, 45],
  ])('sends a refused call back after %d ms rounded up to %d s', (retryAfterMs, retryAfter) => {
    const denied: DecisionLike = { ...ALLOWED, allowed: false, reason: 'limit', remaining: 0, retryAfterMs }
    expect(checkAnswer(denied, 'ip')).toMatchObject({ allowed: false, reason: 'limit', retryAfter, dimension: 'ip' })
  })

  it('rounds the reset up to whole seconds', () => {
    expect(checkAnswer({ ...ALLOWED, resetAt: ALLOWED.resetAt + 1 }, 'user').resetAt).toBe('2025-11-05T10:05:01Z')
  })

  it('property: writes every instant as Date does, whatever instant came before', () => {
    const instant = fc.oneof(fc.integer({ min: 0, max: 4_000_000_000 }), fc.nat(200_000))
    fc.assert(
      fc.property(fc.array(instant, { minLength: 2 }), (seconds) => {
        const told = seconds.map((second) => checkAnswer({ ...ALLOWED, resetAt: second * 1000 }, 'user').resetAt)
        expect(told).toEqual(seconds.map((second) => new Date(second * 1000).toISOString().replace('.000Z', 'Z')))
      }),
    )
  })

  it('names no time to come back when waiting does not help', () => {
    const never: DecisionLike = { ...ALLOWED, allowed: false, reason: 'never', retryAfterMs: Number.POSITIVE_INFINITY }
    expect(checkAnswer(never, 'user')).toMatchObject({ allowed: false, reason: 'never', retryAfter: null })
  })

  it('has no numbers where nothing limits the call', () => {
    const unlimited = { ...ALLOWED, limit: Number.POSITIVE_INFINITY, remaining: Number.POSITIVE_INFINITY, resetAt: 0 }
    expect(checkAnswer(unlimited, 'user')).toMatchObject({ limit: null, remaining: null, resetAt: null })
  })
})

describe('checkAnswerJson', () => {
  it('property: is the text of JSON.stringify', () => {
    const count = fc.oneof(fc.nat(), fc.integer({ min: 0, max: 9_000_000_000 }))
    const decision = fc.record({
      allowed: fc.boolean(),
      reason: fc.constantFrom('allowed', 'limit', 'never', 'blocked', 'unavailable'),
      rule: fc.string({ unit: 'binary' }),
      limit: fc.oneof(count, fc.constant(Number.POSITIVE_INFINITY)),
      remaining: count,
      resetAt: fc.integer({ min: 0, max: 4_000_000_000_000 }),
      retryAfterMs: fc.oneof(count, fc.constant(Number.POSITIVE_INFINITY)),
    })
    const dimension = fc.constantFrom('ip', 'user', 'apiKey', 'tenant', 'global')
    const id = fc.oneof(fc.constant({}), fc.record({ decisionId: fc.string({ unit: 'binary' }) }))
    fc.assert(
      fc.property(decision, dimension, id, (made, counted, named) => {
        const answer = { ...checkAnswer(made, counted), ...named }
        expect(checkAnswerJson(answer)).toBe(JSON.stringify(answer))
      }),
    )
  })
})
