import { START_MICROS } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import type { QueueLimit } from '../rule/limit.ts'
import { compileRule } from '../rule-kinds.ts'
import { createVerdict, type State, step } from './algorithm.ts'
import { leakyBucketQueueAlgorithm } from './leaky-bucket-queue.ts'

const limit = compileRule('rule', { algorithm: 'leaky-bucket-queue', capacity: 5, ratePerSecond: 10 })[0] as QueueLimit

/** Lets a call in, and tells when it leaves. */
function join(state: State, atMs: number) {
  const now = START_MICROS + atMs * 1000
  const { verdict, state: after } = step(leakyBucketQueueAlgorithm, state, limit, { now, cost: 1 })
  const leavesMs = atMs + verdict.delayMicros / 1000
  return { leavesMs, state: after, charge: { at: now, cost: 1, mark: verdict.mark, holder: 1 } }
}

function giveUp(state: State, { charge }: ReturnType<typeof join>, atMs: number) {
  const verdict = createVerdict()
  const correction = { now: START_MICROS + atMs * 1000, units: -1, charge }
  const applied = leakyBucketQueueAlgorithm.correct(state, limit, correction, verdict)
  return { applied, state: verdict.next.slice(0, 2) }
}

describe('a place in the queue', () => {
  it('that is the last is given back whole, and so is the one before it then', () => {
    const a = join([], 0)
    const b = join(a.state, 30)
    const c = join(b.state, 50)
    expect([a.leavesMs, b.leavesMs, c.leavesMs]).toEqual([0, 100, 200])
    const withoutC = giveUp(c.state, c, 60)
    expect(withoutC.applied).toBe(-1)
    const withoutB = giveUp(withoutC.state, b, 70)
    expect(withoutB.applied).toBe(-1)
    expect(join(withoutB.state, 70).leavesMs).toBe(100)
  })

  it('in the middle is not handed out again: those behind it already know when to leave', () => {
    const a = join([], 0)
    const b = join(a.state, 0)
    const c = join(b.state, 0)
    const withoutB = giveUp(c.state, b, 50)
    expect(withoutB.applied).toBeCloseTo(0)
    expect(join(withoutB.state, 50).leavesMs).toBe(300)
  })

  it('that has been left is not given back', () => {
    const a = join([], 0)
    expect(giveUp(a.state, a, 100).applied).toBeCloseTo(0)
    const b = join(a.state, 100)
    expect(giveUp(b.state, a, 110).applied).toBeCloseTo(0)
  })

  it('keeps its distance from one that came later by a clock that is ahead', () => {
    const ahead = join([], 80)
    expect(ahead.leavesMs).toBe(80)
    expect(join(ahead.state, 0).leavesMs).toBe(180)
  })
})
