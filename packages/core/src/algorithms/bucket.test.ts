import { START_MICROS } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import type { MeterLimit } from '../rule/limit.ts'
import type { Rule } from '../rule/rule.ts'
import { compileRule } from '../rule-kinds.ts'
import { createVerdict, step } from './algorithm.ts'
import { tokenBucketAlgorithm } from './bucket.ts'

function bucket(capacity: number, refillPerSecond: number): MeterLimit {
  const rule: Rule = { algorithm: 'token-bucket', capacity, refillPerSecond }
  return compileRule('rule', rule)[0] as MeterLimit
}

describe('a bucket of extreme size', () => {
  // Levels and costs whose sum is beyond whole numbers, while each of them is not.
  it.each([
    [4_530_463_787, 0.639217, { level: 4_530_463_786_999_999, cost: 4_530_463_787 }],
    [5_132_307_266, 13 / 9, { level: 5_132_307_265_999_997, cost: 5_132_307_266 }],
    [9_000_000_000, 0.5, { level: 8_999_999_999_999_999, cost: 100_000_000 }],
  ])('of %d tokens at %d per second announces its retry exactly', (capacity, refillPerSecond, { level, cost }) => {
    const limit = bucket(capacity, refillPerSecond)
    const ask = (now: number) => step(tokenBucketAlgorithm, [level, START_MICROS], limit, { now, cost }).verdict
    const { retryAt } = ask(START_MICROS)
    expect([ask(retryAt - 1).ruling, ask(retryAt).ruling]).toEqual(['limit', 'allowed'])
  })

  it('answers although it would take longer to refill than time can be counted', () => {
    const limit = bucket(7_777_777_777, 1e-8)
    const { verdict, state } = step(tokenBucketAlgorithm, [], limit, { now: START_MICROS, cost: 7_777_777_777 })
    expect(verdict).toMatchObject({ ruling: 'allowed', remaining: 0 })
    expect(verdict.resetAt).toBeGreaterThan(Number.MAX_SAFE_INTEGER)
    const denied = step(tokenBucketAlgorithm, state, limit, { now: START_MICROS, cost: 7_777_777_777 }).verdict
    expect(denied).toMatchObject({ ruling: 'limit', remaining: 0 })
  })

  it('stays a number whatever is charged beyond it', () => {
    const limit = bucket(5, 1)
    const verdict = createVerdict()
    const charge = { at: START_MICROS, cost: 1, mark: 0, holder: 1 }
    const correction = { now: START_MICROS, units: Number.MAX_SAFE_INTEGER, charge }
    tokenBucketAlgorithm.correct([1_000_000, START_MICROS], limit, correction, verdict)
    expect(verdict.next.slice(0, 2)).toEqual([Number.MAX_SAFE_INTEGER, START_MICROS])
  })
})
