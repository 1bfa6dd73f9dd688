import type { Rule } from '@sluice/core'
import type { Algorithm, Ask, Charge, Limit, State, Verdict } from '@sluice/core/internal'
import { ALGORITHMS, compileRule, createVerdict, NEVER } from '@sluice/core/internal'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { TRACES } from './algorithm-traces.ts'
import type { AlgorithmName, CallSequence } from './arbitraries.ts'
import { callSequences, rules, spanMicros } from './arbitraries.ts'
import { START_MICROS } from './fake-clock.ts'
import { departuresModel } from './models/departures-model.ts'
import { modelOf } from './models/model-of.ts'
import type { Play } from './play.ts'
import { play } from './play.ts'
import { expectedTrace, playTrace } from './trace.ts'

/** How to run {@link algorithmSuite}. */
export interface AlgorithmSuiteOptions {
  /** The implementation to prove; the one in the core's registry when left out. */
  readonly algorithm?: Algorithm
  /** Random sequences for each property; 200 when left out. */
  readonly numRuns?: number
}

type RateLimit = Extract<Limit, { rate: unknown }>

/**
 * Proves that an implementation of an algorithm decides as it should: worked examples step by step, agreement with a naive
 * reference model on random sequences, and the properties that every algorithm promises. Call it inside a test file.
 */
export function algorithmSuite(name: AlgorithmName, options: AlgorithmSuiteOptions = {}): void {
  const { algorithm = ALGORITHMS[name] as Algorithm, numRuns = 200 } = options
  const subject: Subject = { name, algorithm, numRuns }
  describe(`the algorithm ${name}`, () => {
    describe.each(TRACES[name].map((trace) => [trace.title, trace] as const))('%s', (_title, trace) => {
      it('step by step', () => expect(playTrace(trace, algorithm)).toEqual(expectedTrace(trace)))
    })
    modelProperties(subject)
    answerProperties(subject)
    timeProperties(subject)
    limitProperties(subject)
    correctionProperties(subject)
    boundProperties(subject)
  })
}

interface Subject {
  readonly name: AlgorithmName
  readonly algorithm: Algorithm
  readonly numRuns: number
}

function decide({ algorithm }: Subject, limit: Limit, { state, ask }: { state: State; ask: Readonly<Ask> }): Verdict {
  const verdict = createVerdict()
  algorithm.decide(state, limit, ask, verdict)
  return verdict
}

/** Checks something about every call of random sequences. */
function forEachCall(
  { algorithm, name, numRuns }: Subject,
  check: (one: Play, sequence: CallSequence, index: number) => void,
): void {
  fc.assert(
    fc.property(callSequences(name), (sequence) => {
      for (const [index, one] of play(sequence, algorithm).entries()) check(one, sequence, index)
    }),
    { numRuns },
  )
}

function stateAfter(verdict: Verdict): State {
  return verdict.next.slice(0, verdict.nextLength)
}

function modelProperties(subject: Subject): void {
  it('decides as the reference model does', () => {
    fc.assert(
      fc.property(callSequences(subject.name), (sequence) => {
        const { limit } = sequence
        const model = modelOf(limit)
        for (const { ask, verdict } of play(sequence, subject.algorithm)) {
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

function answerProperties(subject: Subject): void {
  it('answers from its arguments alone, and changes none of them', () => {
    forEachCall(subject, ({ state, ask, verdict }, { limit }) => {
      // The arguments are frozen: writing to them throws. A used answer sheet must make no difference.
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

  it('announces the retry exactly: refused a microsecond before, allowed then', () => {
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
        const [limit] = compileRule('rule', withLimit(rule, () => 0))
        const ask = { now: START_MICROS, cost, entitled: true, holder: 1 }
        const { ruling, remaining } = decide(subject, limit!, { state: [], ask })
        expect({ ruling, remaining }).toEqual({ ruling: 'never', remaining: 0 })
      }),
      { numRuns: 50 },
    )
  })
}

function timeProperties(subject: Subject): void {
  it('never gives out units twice when the clock goes back', () => {
    forEachCall(subject, ({ ask, after, verdict }, { limit }, index) => {
      if (verdict.ruling !== 'allowed' || ask.cost === 0) return
      const back = Math.max(0, ask.now - Math.ceil(spanMicros(limit) * (index / 10)) - 1)
      const free = { ...ask, cost: 0 }
      const leftThen = decide(subject, limit, { state: after, ask: { ...free, now: back } }).remaining
      expect(leftThen).toBeLessThanOrEqual(decide(subject, limit, { state: after, ask: free }).remaining)
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

function answersOf({ ruling, remaining, resetAt, retryAt, delayMicros }: Verdict): object {
  return { ruling, remaining, resetAt, retryAt, delayMicros }
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

function limitProperties(subject: Subject): void {
  it('applies a raised limit to what has been used, at once', () => {
    forEachCall(subject, ({ ask, after, verdict }, { limit, rule }, index) => {
      const by = index + 1
      if (limit.limit + by > 90_000) return
      const [raised] = compileRule('rule', withLimit(rule, (value) => value + by))
      const { remaining } = decide(subject, raised!, { state: after, ask: { ...ask, cost: 0 } })
      expect(remaining).toBeGreaterThanOrEqual(verdict.remaining + by)
    })
  })

  it('applies a lowered limit to what has been used, at once', () => {
    forEachCall(subject, ({ ask, after, verdict }, { limit, rule }, index) => {
      const lower = Math.max(1, limit.limit - index)
      const [lowered] = compileRule('rule', withLimit(rule, (value) => Math.min(value, lower)))
      const { remaining } = decide(subject, lowered!, { state: after, ask: { ...ask, cost: 0 } })
      expect(remaining).toBeLessThanOrEqual(lowered!.capacity)
      expect(remaining).toBeLessThanOrEqual(verdict.remaining)
    })
  })
}

interface Correcting {
  readonly limit: Limit
  readonly state: State
  readonly now: number
  readonly units: number
  readonly charge: Charge
}

function correct(
  { algorithm }: Subject,
  { limit, state, ...correction }: Correcting,
): { applied: number | undefined; state: State; freshAt: number } {
  const verdict = createVerdict()
  const applied = algorithm.correct(state, limit, correction, verdict)
  return { applied, state: Object.freeze(stateAfter(verdict)), freshAt: verdict.freshAt }
}

/** Every call of random sequences that was charged, as a charge. */
function forEachCharge(
  subject: Subject,
  check: (
    charged: { play: Play; charge: Charge; limit: Limit },
    rest: { plays: readonly Play[]; index: number; sequence: CallSequence },
  ) => void,
): void {
  fc.assert(
    fc.property(callSequences(subject.name), (sequence) => {
      const plays = play(sequence, subject.algorithm)
      for (const [index, one] of plays.entries()) {
        if (one.verdict.ruling !== 'allowed' || one.ask.cost === 0) continue
        const { now, cost, holder } = one.ask
        const charge = { at: now, cost, holder, mark: one.verdict.mark }
        check({ play: one, charge, limit: sequence.limit }, { plays, index, sequence })
      }
    }),
    { numRuns: subject.numRuns },
  )
}

function correctionProperties(subject: Subject): void {
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
      // Everything else happens with and without the charge; what is left must not be more than without it.
      const without = withoutCharge(subject, { sequence, plays, index })
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
        // A window that is known to have been idle carries units over, one that is not known does not.
        if (limit.algorithm === 'fixed-window' && limit.rolloverMax > 0) continue
        // Without the charge a later call would have been paid by the window, and not by a burst that has since refilled.
        if (limit.algorithm === 'hybrid') continue
        expect(after).toBeLessThanOrEqual(decide(subject, limit, { state: without[step]!, ask: peek }).remaining)
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

/** The states of a sequence in which one charge was left out and all others happened all the same. */
function withoutCharge(
  subject: Subject,
  { sequence, plays, index }: { sequence: CallSequence; plays: readonly Play[]; index: number },
): readonly State[] {
  let state: State = []
  return plays.map(({ ask, verdict }, step) => {
    if (step === index || verdict.ruling !== 'allowed' || ask.cost === 0) return state
    const answer = decide(subject, sequence.limit, { state, ask })
    expect(answer.ruling).toBe('allowed')
    state = stateAfter(answer)
    return state
  })
}

function boundProperties(subject: Subject): void {
  switch (subject.name) {
    case 'token-bucket':
    case 'leaky-bucket-meter':
    case 'gcra':
      rateBound(subject)
      tightness(subject)
      return
    case 'leaky-bucket-queue':
      rateBound(subject)
      tightness(subject)
      spacing(subject)
      return
    case 'sliding-window-log':
    case 'sliding-window-segments':
      windowBound(subject)
  }
}

/** The calls that were let in, in order. */
function admitted(plays: readonly Play[]): readonly Play[] {
  return plays.filter(({ ask, verdict }) => verdict.ruling === 'allowed' && ask.cost > 0)
}

function rateBound(subject: Subject): void {
  it('admits at most capacity + rate x time in every interval', () => {
    fc.assert(
      fc.property(callSequences(subject.name), (sequence) => {
        const calls = admitted(play(sequence, subject.algorithm))
        const limit = sequence.limit as RateLimit
        for (const [first, from] of calls.entries()) {
          let units = 0n
          for (const to of calls.slice(first)) {
            units += BigInt(to.ask.cost)
            const elapsed = BigInt(to.ask.now - from.ask.now)
            const most = BigInt(limit.capacity) * 1_000_000n * BigInt(limit.rate.micros) + elapsed * BigInt(limit.rate.units)
            expect(units * 1_000_000n * BigInt(limit.rate.micros) <= most).toBe(true)
          }
        }
      }),
      { numRuns: subject.numRuns },
    )
  })
}

/** The calls as an ideal meter without rounding sees them: admitted never too early, and late by a micro-unit each at most. */
function tightness(subject: Subject): void {
  it('refuses only what an exact meter would refuse, but for a micro-unit a call', () => {
    fc.assert(
      fc.property(callSequences(subject.name), (sequence) => {
        const limit = sequence.limit as RateLimit
        const [units, micros] = [BigInt(limit.rate.units), BigInt(limit.rate.micros)]
        const full = BigInt(limit.capacity) * 1_000_000n * micros
        // The level in micro-units, multiplied by `micros` so that it is whole.
        let [level, at, lost] = [0n, 0n, 0n]
        for (const { ask, verdict } of play(sequence, subject.algorithm)) {
          const now = BigInt(ask.now)
          const sunk = level - (now - at) * units
          level = sunk > 0n ? sunk : 0n
          at = now
          const after = level + BigInt(ask.cost) * 1_000_000n * micros
          if (verdict.ruling === 'limit') expect(after + (lost + 1n) * micros > full).toBe(true)
          if (verdict.ruling !== 'allowed') continue
          expect(after <= full).toBe(true)
          level = after
          lost += 1n
        }
      }),
      { numRuns: subject.numRuns },
    )
  })
}

/** Sequences whose every instant is a whole number, the last departure included. */
const shapedSequences = callSequences('leaky-bucket-queue').filter(({ startMicros, limit, calls }) => {
  const waited = calls.reduce((sum, { advanceMicros }) => sum + advanceMicros, 0)
  const { capacity, rate } = limit as RateLimit
  return startMicros + waited + (capacity * 1e6 * rate.micros) / rate.units < Number.MAX_SAFE_INTEGER
})

function spacing(subject: Subject): void {
  it('lets calls out at a constant rate, as one server would', () => {
    fc.assert(
      fc.property(shapedSequences, (sequence) => {
        const limit = sequence.limit as RateLimit
        const [units, micros] = [BigInt(limit.rate.units), BigInt(limit.rate.micros)]
        const server = departuresModel(limit)
        let [before, work] = [0n, 0n]
        for (const [index, { ask, verdict }] of admitted(play(sequence, subject.algorithm)).entries()) {
          const leavesAt = BigInt(ask.now) + BigInt(verdict.delayMicros)
          const ideal = server.waitMicros(ask.now)
          expect(verdict.delayMicros).toBeGreaterThanOrEqual(ideal)
          // Late by a micro-unit for each call before, at most, and a microsecond of rounding.
          expect(verdict.delayMicros).toBeLessThanOrEqual(ideal + Number((BigInt(index) * micros) / units) + 2)
          // The call before is worked off: work x 10^6 x micros / units microseconds, to the microsecond.
          expect((leavesAt - before + 1n) * units > work * 1_000_000n * micros).toBe(true)
          server.join(ask.now, ask.cost)
          ;[before, work] = [leavesAt, BigInt(ask.cost)]
        }
      }),
      { numRuns: subject.numRuns },
    )
  })

  it('keeps calls apart when places in the queue are given up', () => {
    fc.assert(
      fc.property(
        shapedSequences,
        fc.array(fc.nat(29), { maxLength: 10 }),
        (sequence, givenUp) => {
          const limit = sequence.limit as RateLimit
          const leaving: { at: bigint; work: bigint; index: number }[] = []
          let state: State = []
          let now = sequence.startMicros
          const charges: Charge[] = []
          for (const [index, { advanceMicros, cost }] of sequence.calls.entries()) {
            now += advanceMicros
            const verdict = decide(subject, limit, { state, ask: { now, cost, entitled: true, holder: index + 1 } })
            charges.push({ at: now, cost, mark: verdict.mark, holder: index + 1 })
            if (verdict.ruling === 'allowed' && cost > 0) {
              state = stateAfter(verdict)
              leaving.push({ at: BigInt(now) + BigInt(verdict.delayMicros), work: BigInt(cost), index })
            }
            for (const which of givenUp.filter((place) => (place * 7 + index) % 5 === 0 && place <= index)) {
              const place = leaving.findIndex((one) => one.index === which && one.at > BigInt(now))
              if (place < 0) continue
              const charge = charges[which]!
              state = correct(subject, { limit, state, now, units: -charge.cost, charge }).state
              leaving.splice(place, 1)
            }
          }
          for (const [index, one] of leaving.entries()) {
            const next = leaving[index + 1]
            if (next === undefined) continue
            const gap = (next.at - one.at + 1n) * BigInt(limit.rate.units)
            expect(gap > one.work * 1_000_000n * BigInt(limit.rate.micros)).toBe(true)
          }
        },
      ),
      { numRuns: subject.numRuns },
    )
  })
}

function windowBound(subject: Subject): void {
  it('never admits more than the limit in any window', () => {
    fc.assert(
      fc.property(callSequences(subject.name), (sequence) => {
        const calls = admitted(play(sequence, subject.algorithm))
        const { limit, windowMicros } = sequence.limit as Extract<Limit, { windowMicros: number }>
        for (const [first, from] of calls.entries()) {
          const inWindow = calls.slice(first).filter(({ ask }) => ask.now < from.ask.now + windowMicros)
          expect(inWindow.reduce((sum, { ask }) => sum + ask.cost, 0)).toBeLessThanOrEqual(limit)
        }
      }),
      { numRuns: subject.numRuns },
    )
  })
}
