import type { DecisionLike } from '@sluice/contract'
import { expect, it } from 'vitest'
import { narrowestDecision } from './request-outcome.ts'

function decision(allowed: boolean, remaining: number): DecisionLike {
  const reason = allowed ? 'allowed' : 'limit'
  return { allowed, reason, rule: 'default', limit: 10, remaining, resetAt: 0, retryAfterMs: allowed ? 0 : 1 }
}

const [narrow, wide, denied] = [decision(true, 2), decision(true, 9), decision(false, 9)]

it.each([
  ['the only one', undefined, wide, wide],
  ['the one there was, when the next limiter was not asked', wide, undefined, wide],
  ['none, when no limiter decided', undefined, undefined, undefined],
  ['the earlier with less left', narrow, wide, narrow],
  ['the later with less left', wide, narrow, narrow],
  ['a denial, whatever is left', narrow, denied, denied],
])('tells %s', (_, before, next, told) => {
  expect(narrowestDecision(before, next)).toBe(told)
})
