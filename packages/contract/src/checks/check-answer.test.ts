import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { batchAnswerJson, checkAnswer, checkAnswerJson } from './check-answer.ts'
import type { DecisionLike } from './decision.ts'

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
    const instant = fc.oneof(fc.integer({ min: 1, max: 4_000_000_000 }), fc.integer({ min: 1, max: 200_000 }))
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

  it('keeps the limit when what is left is unknown', () => {
    const failure = { mode: 'open', cause: 'unreachable', charged: 'no' } as const
    const answer = checkAnswer({ ...ALLOWED, remaining: null, resetAt: 0, failure }, 'user')
    expect(answer).toMatchObject({ allowed: true, limit: 1000, remaining: null, resetAt: null, failure })
    expect(JSON.parse(checkAnswerJson(answer))).toMatchObject({ limit: 1000, remaining: null, resetAt: null, failure })
  })

  it('has no numbers where nothing limits the call', () => {
    const unlimited = { ...ALLOWED, limit: Number.POSITIVE_INFINITY, remaining: Number.POSITIVE_INFINITY, resetAt: 0 }
    expect(checkAnswer(unlimited, 'user')).toMatchObject({ limit: null, remaining: null, resetAt: null })
  })

  it('has no instant where there is none', () => {
    const denied: DecisionLike = { ...ALLOWED, allowed: false, reason: 'denied', limit: 0, remaining: 0, resetAt: 0 }
    expect(checkAnswer({ ...denied, retryAfterMs: Number.POSITIVE_INFINITY }, '')).toMatchObject({
      allowed: false,
      reason: 'denied',
      limit: 0,
      resetAt: null,
      retryAfter: null,
    })
  })

  it('tells id, version, delay and failure where the decision has them', () => {
    const failure = { mode: 'local', cause: 'deadline', charged: 'unknown' } as const
    const decision: DecisionLike = { ...ALLOWED, version: 12, delayMs: 1.5, failure, limits: [] }
    expect(checkAnswer(decision, 'tenant+user', '4711')).toMatchObject({
      dimension: 'tenant+user',
      decisionId: '4711',
      version: 12,
      delayMs: 1.5,
      failure,
    })
  })

  it('tells no delay where there is none', () => {
    expect(checkAnswer({ ...ALLOWED, delayMs: 0 }, 'user').delayMs).toBeUndefined()
  })
})

const count = fc.oneof(fc.nat(), fc.integer({ min: 0, max: 9_000_000_000 }))
const hostileText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ unit: 'grapheme-ascii', maxLength: 20 }),
  fc.constantFrom('"', '\\', '\n', '\u001f', '~\u007f', '\ud800', ' !#[]'),
)
const decisions: fc.Arbitrary<DecisionLike> = fc.record(
  {
    allowed: fc.boolean(),
    reason: fc.constantFrom('allowed', 'exempt', 'unlimited', 'limit', 'never', 'blocked', 'denied', 'unavailable'),
    rule: hostileText,
    limit: fc.oneof(count, fc.constant(Number.POSITIVE_INFINITY)),
    remaining: count,
    resetAt: fc.integer({ min: 0, max: 4_000_000_000_000 }),
    retryAfterMs: fc.oneof(count, fc.constant(Number.POSITIVE_INFINITY)),
    version: fc.nat(),
    delayMs: fc.oneof(fc.nat(), fc.double({ min: 0, max: 1e9, noNaN: true })),
    failure: fc.record({
      mode: fc.constantFrom('open', 'closed', 'local'),
      cause: fc.constantFrom('deadline', 'unreachable', 'refused', 'breaker'),
      charged: fc.constantFrom('no', 'unknown'),
    }),
  },
  { requiredKeys: ['allowed', 'reason', 'rule', 'limit', 'remaining', 'resetAt', 'retryAfterMs'] },
)
const answers = fc
  .tuple(decisions, fc.oneof(fc.constantFrom('ip', 'user', 'tenant+user', ''), hostileText), fc.option(hostileText))
  .map(([decision, dimension, id]) => checkAnswer(decision, dimension, id ?? undefined))

describe('checkAnswerJson', () => {
  it('property: is the text of JSON.stringify', () => {
    fc.assert(
      fc.property(answers, (answer) => {
        expect(checkAnswerJson(answer)).toBe(JSON.stringify(answer))
      }),
    )
  })
})

describe('batchAnswerJson', () => {
  it('property: is the text of JSON.stringify', () => {
    fc.assert(
      fc.property(fc.array(answers, { maxLength: 4 }), (several) => {
        expect(batchAnswerJson(several)).toBe(JSON.stringify({ answers: several }))
      }),
    )
  })
})
