import { LATEST } from '@sluice/core/internal'
import type { Limit, State } from '@sluice/core/store'
import { expect, it } from 'vitest'
import type { AlgorithmUnderTest, Surroundings } from './algorithm-under-test.ts'
import { answersOf, correct, decide, forEachCharge, stateAfter } from './algorithm-under-test.ts'

/** What every correction promises: never too much given back, and what is charged beyond the limit is felt. */
export function correctionProperties(subject: AlgorithmUnderTest): void {
  it('takes a charge back within its instant as if it had never been', () => {
    forEachCharge(subject, ({ play: one, charge, limit }) => {
      const { now, cost } = one.ask
      const back = correct(subject, { limit, state: one.after, now, units: -cost, charge })
      expect(back.applied).toBe(-cost)
      const again = decide(subject, limit, { state: back.state, ask: one.ask })
      expect(answersOf(again)).toEqual(answersOf(one.verdict))
    })
  })

  it('never gives back more than was charged, nor more than is still in use, nor into a later window', () => {
    forEachCharge(subject, ({ charge, limit }, { plays, index, sequence }) => {
      const without = isComparable(limit) ? withoutCharge(subject, { sequence, plays, index }) : []
      for (const [step, later] of plays.entries()) {
        if (step < index) continue
        const { now } = later.ask
        const peek = { ...later.ask, cost: 0, entitled: true }
        const units = -(1 + ((charge.cost + step) % charge.cost))
        const back = correct(subject, { limit, state: later.after, now, units, charge })
        const applied = back.applied ?? 0
        expect(applied).toBeLessThanOrEqual(0)
        expect(applied).toBeGreaterThanOrEqual(units)
        expect(back.state.filter((value) => !(Number.isSafeInteger(value) && value >= 0))).toEqual([])
        expect(back.state.length).toBeLessThanOrEqual(subject.algorithm.stateSize(limit))
        const before = decide(subject, limit, { state: later.after, ask: peek }).remaining
        const after = decide(subject, limit, { state: back.state, ask: peek }).remaining
        expect(after).toBeGreaterThanOrEqual(before)
        expect(after).toBeLessThanOrEqual(before + Math.ceil(-applied))
        // Everything else happened with and without the charge; what is left must not be more than without it.
        const state = without[step]
        if (state === undefined) continue
        expect(after).toBeLessThanOrEqual(decide(subject, limit, { state, ask: peek }).remaining)
      }
    })
  })

  it('has nothing to give back to a key that is not known', () => {
    forEachCharge(subject, ({ charge, limit }) => {
      const back = correct(subject, { limit, state: [], now: charge.at, units: -charge.cost, charge })
      expect(back.applied ?? 0).toBeCloseTo(0)
      const peek = { now: charge.at, cost: 0, entitled: true, holder: 1 }
      expect(decide(subject, limit, { state: back.state, ask: peek }).remaining).toBe(
        decide(subject, limit, { state: [], ask: peek }).remaining,
      )
    })
  })

  it('stops at zero use, whatever charge it is given', () => {
    forEachCharge(subject, ({ charge, limit }, { plays, index }) => {
      for (const { ask, after } of plays.slice(index)) {
        const told = { ...charge, cost: limit.capacity + 5 }
        const back = correct(subject, { limit, state: after, now: ask.now, units: -told.cost, charge: told })
        expect(back.state.filter((value) => value < 0)).toEqual([])
        const { remaining } = decide(subject, limit, { state: back.state, ask: { ...ask, cost: 0, entitled: true } })
        expect(remaining).toBeLessThanOrEqual(limit.capacity)
      }
    })
  })

  it('gives back in two parts as much as in one', () => {
    forEachCharge(subject, ({ play: one, charge, limit }) => {
      const { now, cost } = one.ask
      if (cost < 2) return
      // A place in a queue can be given up once; concurrency slots are named by their holder.
      if (subject.name === 'leaky-bucket-queue') return
      const first = correct(subject, { limit, state: one.after, now, units: -1, charge })
      const rest = { ...charge, cost: cost - 1 }
      const second = correct(subject, { limit, state: first.state, now, units: 1 - cost, charge: rest })
      expect([first.applied, second.applied]).toEqual([-1, 1 - cost])
      const again = decide(subject, limit, { state: second.state, ask: one.ask })
      expect(answersOf(again)).toEqual(answersOf(one.verdict))
    })
  })

  it('charges beyond the limit when told to, which later calls feel', () => {
    forEachCharge(subject, ({ play: one, charge, limit }, { index }) => {
      const { now } = one.ask
      const peek = { ...one.ask, cost: 0 }
      const before = decide(subject, limit, { state: one.after, ask: peek }).remaining
      const units = index % 2 === 0 ? before + index + 1 : 1
      const more = correct(subject, { limit, state: one.after, now, units, charge })
      expect(more.applied).toBe(units)
      expect(more.state.filter((value) => !Number.isSafeInteger(value))).toEqual([])
      expect(more.state.length).toBeLessThanOrEqual(subject.algorithm.stateSize(limit))
      const after = decide(subject, limit, { state: more.state, ask: peek }).remaining
      const burst = limit.algorithm === 'hybrid' ? limit.burst.capacity : 0
      expect(after).toBeLessThanOrEqual(Math.max(burst, before - units))
      if (burst === 0) expect(after).toBe(Math.max(0, before - units))
      // It is paid off in the end.
      if (more.freshAt > Number.MAX_SAFE_INTEGER) return
      const fresh = decide(subject, limit, { state: more.state, ask: { ...peek, now: more.freshAt } })
      expect(answersOf(fresh)).toEqual(
        answersOf(decide(subject, limit, { state: [], ask: { ...peek, now: more.freshAt } })),
      )
    })
  })

  it('without a charge takes and gives back units alike, never below zero use', () => {
    // Slots belong to their holders, and turns in a queue were announced.
    if (subject.name === 'concurrency' || subject.name === 'leaky-bucket-queue') return
    forEachCharge(subject, ({ play: one, limit }, { index }) => {
      const { now } = one.ask
      const units = index + 1
      const charge = { at: LATEST, cost: units, mark: 0, holder: 0 }
      const peek = { ...one.ask, cost: 0, entitled: true }
      const before = decide(subject, limit, { state: one.after, ask: peek })
      const more = correct(subject, { limit, state: one.after, now, units, charge: { ...charge, cost: 0 } })
      const back = correct(subject, { limit, state: more.state, now, units: -units, charge })
      expect(more.applied).toBe(units)
      // What had rolled over is not in use, and so is not given back without a charge.
      if (subject.name !== 'token-bucket-rollover' || before.resetAt > now) {
        expect(back.applied).toBe(-units)
        expect(decide(subject, limit, { state: back.state, ask: peek }).remaining).toBe(before.remaining)
      }
      // More than can be stored, with what counts by a part only.
      const all = 3 * limit.capacity + 5
      const none = correct(subject, { limit, state: one.after, now, units: -all, charge: { ...charge, cost: all } })
      expect(none.state.filter((value) => !(Number.isSafeInteger(value) && value >= 0))).toEqual([])
      const empty = decide(subject, limit, { state: none.state, ask: peek }).remaining
      const untouched = decide(subject, limit, { state: [], ask: peek }).remaining
      expect(empty).toBeGreaterThanOrEqual(untouched)
      expect(empty).toBeLessThanOrEqual(limit.capacity)
    })
  })

  it('survives any forced charge', () => {
    forEachCharge(subject, ({ play: one, charge, limit }) => {
      const { now } = one.ask
      const units = Number.MAX_SAFE_INTEGER
      const more = correct(subject, { limit, state: one.after, now, units, charge })
      expect(more.state.filter((value) => !Number.isInteger(value))).toEqual([])
      const { ruling } = decide(subject, limit, { state: more.state, ask: { ...one.ask, entitled: false } })
      expect(ruling).not.toBe('allowed')
    })
  })
}

/**
 * Whether a charge that is given back must leave no more than if it had never been. Not with rollover: a window that is
 * known to have been idle carries units over, one that is not known does not. Not with a burst: without the charge, a
 * later call would have been paid by the window, and not by the burst, which has refilled since.
 */
function isComparable(limit: Limit): boolean {
  if (limit.algorithm === 'hybrid' || limit.algorithm === 'token-bucket-rollover') return false
  return !(limit.algorithm === 'fixed-window' && limit.rolloverMax > 0)
}

/** The states of a sequence in which one charge was left out and all others happened all the same. */
function withoutCharge(subject: AlgorithmUnderTest, { sequence, plays, index }: Surroundings): readonly State[] {
  let state: State = []
  return plays.map(({ ask, verdict }, step) => {
    if (step === index || verdict.ruling !== 'allowed' || ask.cost === 0) return state
    const answer = decide(subject, sequence.limit, { state, ask })
    expect(answer.ruling).toBe('allowed')
    state = stateAfter(answer)
    return state
  })
}
