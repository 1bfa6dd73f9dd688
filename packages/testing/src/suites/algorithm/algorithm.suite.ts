import type { Rule } from '@sluice/core'
import { ALGORITHMS, compileRule, NEVER } from '@sluice/core/internal'
import type { Algorithm, Limit, Verdict } from '@sluice/core/store'
import { createVerdict } from '@sluice/core/store'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { START_MICROS } from '../../fakes/fake-clock.ts'
import { modelOf } from '../../models/model-of.ts'
import type { AlgorithmName } from '../../properties/arbitraries.ts'
import { callSequences, recoveryMicros, rules, spanMicros } from '../../properties/arbitraries.ts'
import { boundProperties } from './algorithm-bounds.suite.ts'
import { correctionProperties } from './algorithm-corrections.suite.ts'
import { TRACES } from './algorithm-traces.ts'
import type { AlgorithmUnderTest } from './algorithm-under-test.ts'
import { answersOf, decide, forEachCall, stateAfter } from './algorithm-under-test.ts'
import { replay } from './replay.ts'
import { expectedTrace, replayTrace } from './trace.ts'

/** How to run {@link algorithmSuite}. */
export interface AlgorithmSuiteOptions {
  /** Implementation under test. Default: the one in the registry of the core. */
  readonly algorithm?: Algorithm
  /** Random sequences per property. Default: 200. */
  readonly numRuns?: number
}

/**
 * Proves that an implementation of an algorithm decides as it should: worked examples step by step, agreement with a
 * naive reference model on random sequences, and the properties that every algorithm promises. Call it inside a test
 * file.
 */
export function algorithmSuite(name: AlgorithmName, options: AlgorithmSuiteOptions = {}): void {
  const { algorithm = ALGORITHMS[name] as Algorithm, numRuns = 200 } = options
  const subject: AlgorithmUnderTest = { name, algorithm, numRuns }
  describe(`the algorithm ${name}`, () => {
    describe.each(TRACES[name].map((trace) => [trace.title, trace] as const))('%s', (_title, trace) => {
      it('step by step', () => expect(replayTrace(trace, algorithm)).toEqual(expectedTrace(trace)))
    })
    modelProperties(subject)
    answerProperties(subject)
    timeProperties(subject)
    limitProperties(subject)
    correctionProperties(subject)
    boundProperties(subject)
  })
}

function modelProperties(subject: AlgorithmUnderTest): void {
  it('decides as the reference model does', () => {
    fc.assert(
      fc.property(callSequences(subject.name), (sequence) => {
        const { limit } = sequence
        const model = modelOf(limit)
        for (const { ask, verdict } of replay(sequence, subject.algorithm)) {
          const left = limit.capacity === 0 ? 0 : model.left(ask)
          const allowed = limit.capacity > 0 && ask.cost <= left
          expect({ allowed: verdict.ruling === 'allowed', remaining: verdict.remaining }).toEqual({
            allowed,
            remaining: allowed ? left - ask.cost : left,
          })
          if (allowed && ask.cost > 0) model.take(ask, ask.cost)
        }
      }),
      { numRuns: subject.numRuns },
    )
  })
}

function answerProperties(subject: AlgorithmUnderTest): void {
  it('answers from its arguments alone, and changes none of them', () => {
    forEachCall(subject, ({ state, ask, verdict }, { limit }) => {
      // The arguments are frozen: writing to them throws. A used verdict must make no difference.
      const sheet: Verdict = { ...createVerdict(), ruling: 'never', remaining: -1, mark: -1, next: [], nextLength: 7 }
      subject.algorithm.decide(state, limit, ask, sheet)
      const { next, nextLength, ...answers } = sheet
      const { next: _next, nextLength: _nextLength, ...expected } = verdict
      expect(answers).toEqual(expected)
      if (verdict.ruling === 'allowed') expect(next.slice(0, nextLength)).toEqual(stateAfter(verdict))
    })
  })

  it('keeps whole numbers only, as many as it says', () => {
    forEachCall(subject, ({ after, verdict }, { limit }) => {
      expect(after.filter((value) => !Number.isSafeInteger(value))).toEqual([])
      expect(after.length).toBeLessThanOrEqual(subject.algorithm.stateSize(limit))
      if (subject.algorithm.fixedSize(limit)) expect([0, subject.algorithm.stateSize(limit)]).toContain(after.length)
      expect(Number.isSafeInteger(verdict.remaining)).toBe(true)
    })
  })

  it('tells truly what remains: so much is allowed, one more is not', () => {
    forEachCall(subject, ({ after, ask, verdict }, { limit }) => {
      const { remaining } = verdict
      expect(remaining).toBeGreaterThanOrEqual(0)
      expect(remaining).toBeLessThanOrEqual(limit.capacity)
      if (remaining > 0) {
        expect(decide(subject, limit, { state: after, ask: { ...ask, cost: remaining } }).ruling).toBe('allowed')
      }
      expect(decide(subject, limit, { state: after, ask: { ...ask, cost: remaining + 1 } }).ruling).not.toBe('allowed')
    })
  })

  it('announces the retry exactly: denied a microsecond before, allowed then', () => {
    forEachCall(subject, ({ state, ask, verdict }, { limit }) => {
      if (verdict.ruling === 'allowed') {
        expect(verdict.retryAt).toBe(ask.now)
        return
      }
      expect(verdict.ruling).toBe(verdict.retryAt === NEVER ? 'never' : 'limit')
      if (verdict.retryAt === NEVER) {
        for (const wait of [1, 2, 5]) {
          const later = { ...ask, now: ask.now + wait * spanMicros(limit) }
          expect(decide(subject, limit, { state, ask: later }).ruling).toBe('never')
        }
        return
      }
      // Beyond whole numbers (some 200 years from now) there is no microsecond before.
      if (verdict.retryAt > Number.MAX_SAFE_INTEGER) return
      expect(verdict.retryAt).toBeGreaterThan(ask.now)
      expect(decide(subject, limit, { state, ask: { ...ask, now: verdict.retryAt - 1 } }).ruling).toBe('limit')
      expect(decide(subject, limit, { state, ask: { ...ask, now: verdict.retryAt } }).ruling).toBe('allowed')
    })
  })

  it('calls a cost above the capacity "never", and denies all when the limit is 0', () => {
    forEachCall(subject, ({ state, ask }, { limit }) => {
      const { ruling, retryAt } = decide(subject, limit, { state, ask: { ...ask, cost: limit.capacity + 1 } })
      expect({ ruling, retryAt }).toEqual({ ruling: 'never', retryAt: NEVER })
    })
    fc.assert(
      fc.property(rules(subject.name), fc.nat(5), (rule, cost) => {
        const [limit] = compileRule(
          'rule',
          withLimit(rule, () => 0),
        )
        const ask = { now: START_MICROS, cost, entitled: true, holder: 1 }
        const { ruling, remaining } = decide(subject, limit!, { state: [], ask })
        expect({ ruling, remaining }).toEqual({ ruling: 'never', remaining: 0 })
      }),
      { numRuns: 50 },
    )
  })
}

function timeProperties(subject: AlgorithmUnderTest): void {
  it('never gives out units twice when the clock goes back', () => {
    forEachCall(subject, ({ ask, after, verdict }, { limit }, index) => {
      if (verdict.ruling !== 'allowed' || ask.cost === 0) return
      const back = Math.max(0, ask.now - Math.ceil(spanMicros(limit) * (index / 10)) - 1)
      const free = { ...ask, cost: 0 }
      const leftThen = decide(subject, limit, { state: after, ask: { ...free, now: back } }).remaining
      const leftNow = decide(subject, limit, { state: after, ask: free }).remaining
      // As if the clock stood still; only a weighted count does not know how far its window had come, and gives less.
      if (isWeighted(limit)) expect(leftThen).toBeLessThanOrEqual(leftNow)
      else expect(leftThen).toBe(leftNow)
      const earlier = decide(subject, limit, { state: after, ask: { ...ask, now: back } })
      const standing = decide(subject, limit, { state: after, ask })
      if (earlier.ruling !== 'allowed') return
      expect(standing.ruling).toBe('allowed')
      // What was allowed then still counts once the clock has caught up; a lease ends when it says, by that clock.
      const caughtUp = decide(subject, limit, { state: stateAfter(earlier), ask: { ...ask, cost: 0 } })
      const inOrder = decide(subject, limit, { state: stateAfter(standing), ask: { ...ask, cost: 0 } })
      if (subject.name !== 'concurrency') expect(caughtUp.remaining).toBeLessThanOrEqual(inOrder.remaining)
    })
  })

  it('says from when on a state is as good as none', () => {
    forEachCall(subject, ({ ask, after, verdict }, { limit }, index) => {
      const { freshAt } = verdict
      if (freshAt > Number.MAX_SAFE_INTEGER) return
      for (const now of [Math.max(freshAt, ask.now), Math.max(freshAt, ask.now) + index * spanMicros(limit)]) {
        for (const cost of [0, ask.cost, limit.capacity, limit.capacity + 1]) {
          const later = { ...ask, now, cost }
          const known = decide(subject, limit, { state: after, ask: later })
          const fresh = decide(subject, limit, { state: [], ask: later })
          expect(answersOf(known)).toEqual(answersOf(fresh))
        }
      }
    })
  })

  it('has its full limit back when it says so', () => {
    forEachCall(subject, ({ ask, after, verdict }, { limit }) => {
      // A window says when it ends, which is not yet when a window before it has left the view or a burst is full.
      if (!['token-bucket', 'leaky-bucket-meter', 'leaky-bucket-queue', 'gcra', 'concurrency'].includes(subject.name))
        return
      if (limit.capacity === 0 || verdict.resetAt > Number.MAX_SAFE_INTEGER) return
      const full = decide(subject, limit, { state: after, ask: { ...ask, now: verdict.resetAt, cost: 0 } })
      expect(full.remaining).toBe(limit.capacity)
    })
  })
}

function isWeighted(limit: Limit): boolean {
  return (limit.algorithm === 'hybrid' ? limit.base : limit).algorithm === 'sliding-window-counter'
}

/** The rule with another limit; a burst given as units above a window goes with it. */
function withLimit(rule: Rule, change: (limit: number) => number): Rule {
  const changed: Record<string, unknown> = { ...rule }
  for (const option of ['limit', 'capacity', 'burst']) {
    const value = changed[option]
    if (typeof value === 'number') changed[option] = Math.min(9_000_000_000, change(value))
  }
  return changed as unknown as Rule
}

function limitProperties(subject: AlgorithmUnderTest): void {
  it('applies a raised limit to what has been used, at once', () => {
    forEachCall(subject, ({ ask, after, verdict }, { limit, rule }, index) => {
      const by = index + 1
      if (limit.capacity + by > 90_000) return
      const [raised] = compileRule(
        'rule',
        withLimit(rule, (value) => value + by),
      )
      const { remaining } = decide(subject, raised!, { state: after, ask: { ...ask, cost: 0 } })
      expect(remaining).toBeGreaterThanOrEqual(verdict.remaining + by)
    })
  })

  it('applies a lowered limit to what has been used, at once', () => {
    forEachCall(subject, ({ ask, after, verdict }, { limit, rule }, index) => {
      const lower = Math.max(1, limit.limit - index)
      const [lowered] = compileRule(
        'rule',
        withLimit(rule, (value) => Math.min(value, lower)),
      )
      const { remaining } = decide(subject, lowered!, { state: after, ask: { ...ask, cost: 0 } })
      expect(remaining).toBeLessThanOrEqual(lowered!.capacity)
      expect(remaining).toBeLessThanOrEqual(verdict.remaining)
    })
  })

  it('takes over what was stored under any other limit of its form', () => {
    fc.assert(
      fc.property(callSequences(subject.name), rules(subject.name), (sequence, rule) => {
        const [other] = compileRule('rule', rule)
        if (other!.id !== sequence.limit.id) return
        for (const { ask, after } of replay(sequence, subject.algorithm)) {
          const verdict = decide(subject, other!, { state: after, ask })
          expect(verdict.remaining).toBeGreaterThanOrEqual(0)
          expect(verdict.remaining).toBeLessThanOrEqual(other!.capacity)
          // No caller is denied for longer than the new limit needs to recover from all that the old one could give.
          expect(verdict.freshAt).toBeLessThanOrEqual(ask.now + longestRecovery(sequence.limit, other!))
          if (verdict.ruling !== 'limit' || verdict.retryAt > Number.MAX_SAFE_INTEGER) continue
          const early = decide(subject, other!, { state: after, ask: { ...ask, now: verdict.retryAt - 1 } })
          const inTime = decide(subject, other!, { state: after, ask: { ...ask, now: verdict.retryAt } })
          expect([early.ruling, inTime.ruling]).toEqual(['limit', 'allowed'])
        }
      }),
      { numRuns: subject.numRuns },
    )
  })
}

/** How long what the limit `before` admitted can count under the limit `after`, in microseconds, generously. */
function longestRecovery(before: Limit, after: Limit): number {
  const refill = after.algorithm === 'hybrid' ? after.burst : after
  const level =
    'rate' in refill ? ((before.capacity + after.capacity) * 1e6 * refill.rate.micros) / refill.rate.units : 0
  return 2 * level + 4 * recoveryMicros(after) + recoveryMicros(before)
}
