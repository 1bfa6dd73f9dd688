import { START_MICROS } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import type { OverlayLimit } from '../rule/limit.ts'
import type { Rule } from '../rule/rule.ts'
import { compileRule } from '../rule-kinds.ts'
import { createVerdict, type State, step, type Verdict } from './algorithm.ts'
import { hybridAlgorithm } from './hybrid.ts'

function limitOf(rule: Rule): OverlayLimit {
  return compileRule('rule', rule)[0] as OverlayLimit
}

function ask(state: State, limit: OverlayLimit, question: { cost: number; atMs?: number; entitled?: boolean }) {
  const { cost, atMs = 0, entitled = true } = question
  return step(hybridAlgorithm, state, limit, { now: START_MICROS + atMs * 1000, cost, entitled })
}

function force(state: State, limit: OverlayLimit, units: number): State {
  const verdict: Verdict = createVerdict()
  const charge = { at: START_MICROS, cost: 1, mark: 1, holder: 1 }
  hybridAlgorithm.correct(state, limit, { now: START_MICROS, units, charge }, verdict)
  return verdict.next.slice(0, verdict.nextLength)
}

describe('a window with a burst', () => {
  it('of no more than the limit is the window alone', () => {
    for (const rule of [
      { algorithm: 'fixed-window', limit: 2, window: '1s', burst: 2 },
      { algorithm: 'sliding-window-counter', limit: 2, window: '1s', burst: 2 },
      { algorithm: 'hybrid', limit: 2, window: '1s', burst: { capacity: 0, refillPerSecond: 1 } },
    ] as const) {
      const limit = limitOf(rule)
      const first = ask([], limit, { cost: 2 })
      expect(first.verdict).toMatchObject({ ruling: 'allowed', remaining: 0 })
      expect(ask(first.state, limit, { cost: 1 }).verdict).toMatchObject({ ruling: 'limit', remaining: 0 })
    }
  })

  const limit = limitOf({ algorithm: 'hybrid', limit: 2, window: '1s', burst: { capacity: 3, refillPerSecond: 1 } })

  it('can be paid by the burst when the window is overdrawn, and says so', () => {
    const { state } = ask([], limit, { cost: 1 })
    const overdrawn = force(state, limit, 5)
    expect(ask(overdrawn, limit, { cost: 0 }).verdict).toMatchObject({ ruling: 'allowed', remaining: 3 })
    expect(ask(overdrawn, limit, { cost: 1, entitled: false }).verdict).toMatchObject({ ruling: 'limit', remaining: 0 })
    const paid = ask(overdrawn, limit, { cost: 3 })
    expect(paid.verdict).toMatchObject({ ruling: 'allowed', remaining: 0 })
    // What the window owes is still owed.
    expect(ask(paid.state, limit, { cost: 1, atMs: 999 }).verdict).toMatchObject({ ruling: 'limit' })
    expect(ask(paid.state, limit, { cost: 2, atMs: 1000 }).verdict).toMatchObject({ ruling: 'allowed' })
  })

  it('goes on with its window when the burst is made smaller than what was taken of it', () => {
    const { state } = ask([], limit, { cost: 5 })
    const smaller = limitOf({ algorithm: 'hybrid', limit: 2, window: '1s', burst: { capacity: 1, refillPerSecond: 1 } })
    expect(ask(state, smaller, { cost: 2, atMs: 1000 }).verdict).toMatchObject({ ruling: 'allowed', remaining: 0 })
  })

  it('is denied without a trace of what it could have paid', () => {
    const { state } = ask([], limit, { cost: 1 })
    const denied = ask(state, limit, { cost: 3, entitled: false }).verdict
    expect(denied).toMatchObject({ ruling: 'never', remaining: 1, resetAt: START_MICROS + 1_000_000 })
  })

  it('finds its retry when the burst takes longer to refill than time can be counted', () => {
    const slow = limitOf({
      algorithm: 'sliding-window-counter',
      limit: 9_000_000_000 - 5,
      window: '36600d',
      burst: 9_000_000_000,
    })
    const { state } = ask([], slow, { cost: 9_000_000_000 })
    const { ruling, retryAt } = ask(state, slow, { cost: 9_000_000_000 }).verdict
    expect(ruling).toBe('limit')
    expect(retryAt).toBeGreaterThan(START_MICROS)
  })

  it('gives the burst back first, in as many parts as one likes', () => {
    const { verdict, state } = ask([], limit, { cost: 5 })
    expect(verdict.mark).toBe(2)
    const charge = { at: START_MICROS, cost: 5, mark: verdict.mark, holder: 1 }
    let after = state
    const left: [number, number][] = []
    for (const cost of [5, 3, 1]) {
      const corrected = createVerdict()
      const units = -Math.min(2, cost)
      hybridAlgorithm.correct(after, limit, { now: START_MICROS, units, charge: { ...charge, cost } }, corrected)
      after = corrected.next.slice(0, corrected.nextLength)
      const remaining = (entitled: boolean): number => ask(after, limit, { cost: 0, entitled }).verdict.remaining
      left.push([remaining(false), remaining(true)])
    }
    // Window alone, and both: two of the burst, then its last and one of the window's, then the window's last.
    expect(left).toEqual([
      [0, 2],
      [1, 4],
      [2, 5],
    ])
  })
})
