import { START_MICROS } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import type { Limit } from '../rule/limit.ts'
import type { Rule } from '../rule/rule.ts'
import { compileRule } from '../rule-kinds.ts'
import { algorithmOf, createVerdict, type State, step, type Verdict } from './algorithm.ts'

const SECOND = 1_000_000

function limitOf(rule: Rule): Limit {
  return compileRule('rule', rule)[0]!
}

function ask(state: State, limit: Limit, { cost, at = 0 }: { cost: number; at?: number }) {
  return step(algorithmOf(limit), state, limit, { now: START_MICROS + at, cost })
}

function correct(state: State, limit: Limit, { units, at = 0 }: { units: number; at?: number }): Verdict {
  const verdict = createVerdict()
  const charge = { at: START_MICROS, cost: 1, mark: 0, holder: 1 }
  algorithmOf(limit).correct(state, limit, { now: START_MICROS + at, units, charge }, verdict)
  return verdict
}

describe('the exact log', () => {
  const limit = limitOf({ algorithm: 'sliding-window-log', limit: 2, window: '1s' })

  it('does not announce a reset that has passed', () => {
    const { state } = ask([], limit, { cost: 1 })
    const { resetAt, freshAt } = ask(state, limit, { cost: 3, at: 5 * SECOND }).verdict
    expect([resetAt, freshAt]).toEqual([START_MICROS + 5 * SECOND, START_MICROS + 5 * SECOND])
  })

  it('stays as short as it says when it is charged beyond its limit', () => {
    let state = ask([], limit, { cost: 1 }).state
    for (let at = 1; at <= 10; at++) {
      const verdict = correct(state, limit, { units: 1, at })
      state = verdict.next.slice(0, verdict.nextLength)
      expect(state.length).toBeLessThanOrEqual(limit.stateSize)
    }
    // 1 unit of the first instant, and the 10 that were forced in, in view until the last of them leaves.
    expect(state).toEqual([START_MICROS, 1, START_MICROS + 10, 10])
    expect(ask(state, limit, { cost: 1, at: SECOND + 9 }).verdict.ruling).toBe('limit')
    expect(ask(state, limit, { cost: 2, at: SECOND + 10 }).verdict.ruling).toBe('allowed')
  })
})

describe('the segmented log', () => {
  it('is not stuck when its window gets longer: units come back within the new one', () => {
    const minute = limitOf({ algorithm: 'sliding-window-log', limit: 3, window: '1m', segments: 6 })
    const hour = limitOf({ algorithm: 'sliding-window-log', limit: 3, window: '1h', segments: 6 })
    const { state } = ask([], minute, { cost: 3 })
    const denied = ask(state, hour, { cost: 1, at: SECOND }).verdict
    expect(denied).toMatchObject({ ruling: 'limit', remaining: 0 })
    expect(denied.retryAt).toBeLessThanOrEqual(START_MICROS + 2 * 3600 * SECOND)
  })
})

describe('a window with rollover', () => {
  it('carries no more than a lowered limit lets it', () => {
    const ten = limitOf({ algorithm: 'fixed-window', limit: 10, window: '1s', rollover: true })
    const two = limitOf({ algorithm: 'fixed-window', limit: 2, window: '1s', rollover: true })
    const first = ask([], ten, { cost: 1 })
    const second = ask(first.state, ten, { cost: 1, at: SECOND })
    expect(second.verdict.remaining).toBe(18)
    expect(ask(second.state, two, { cost: 0, at: SECOND }).verdict.remaining).toBe(3)
  })
})

describe('the sliding counter', () => {
  it('takes back no more of the window before than is there', () => {
    const limit = limitOf({ algorithm: 'sliding-window-counter', limit: 9, window: '1s' })
    const verdict = createVerdict()
    const charge = { at: START_MICROS, cost: 5, mark: 0, holder: 1 }
    const correction = { now: START_MICROS + SECOND, units: -5, charge }
    const applied = algorithmOf(limit).correct([START_MICROS + SECOND, 2, 4], limit, correction, verdict)
    expect(applied).toBe(-2)
    expect(verdict.next.slice(0, 3)).toEqual([START_MICROS + SECOND, 0, 4])
  })

  it('agrees with itself where units times microseconds are beyond whole numbers', () => {
    const limit = limitOf({ algorithm: 'sliding-window-counter', limit: 8_999_999_999, window: '10000d' })
    const window = (limit as Extract<Limit, { windowMicros: number }>).windowMicros
    const begin = Math.ceil(START_MICROS / window) * window - START_MICROS
    const { state } = ask([], limit, { cost: 8_888_888_887, at: begin })
    for (let part = 1; part < 50; part++) {
      const at = begin + window + Math.floor((window / 50) * part) + part
      const { remaining } = ask(state, limit, { cost: 0, at }).verdict
      expect(ask(state, limit, { cost: remaining, at }).verdict.ruling).toBe('allowed')
      const { ruling, retryAt } = ask(state, limit, { cost: remaining + 1, at }).verdict
      expect(ruling).toBe('limit')
      const later = (micros: number): string =>
        ask(state, limit, { cost: remaining + 1, at: micros - START_MICROS }).verdict.ruling
      expect([later(retryAt - 1), later(retryAt)]).toEqual(['limit', 'allowed'])
    }
  })
})
