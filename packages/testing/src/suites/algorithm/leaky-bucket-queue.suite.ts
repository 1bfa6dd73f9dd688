import type { Charge, Limit, State } from '@sluice/core/store'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { leakyBucketQueueModel } from '../../models/leaky-bucket-queue-model.ts'
import type { CallSequence } from '../../properties/arbitraries.ts'
import { callSequences } from '../../properties/arbitraries.ts'
import type { AlgorithmUnderTest } from './algorithm-under-test.ts'
import { correct, decide, stateAfter } from './algorithm-under-test.ts'
import { admitted, replay } from './replay.ts'

type RateLimit = Extract<Limit, { rate: unknown }>

/** Sequences whose every instant is a whole number, the last departure included. */
const shapedSequences = callSequences('leaky-bucket-queue').filter(({ startMicros, limit, calls }) => {
  const waited = calls.reduce((sum, { advanceMicros }) => sum + advanceMicros, 0)
  const { full, rate } = limit as RateLimit
  return startMicros + waited + (full * rate.micros) / rate.units < Number.MAX_SAFE_INTEGER
})

/** What a queue promises: one call after the other, as one server would let them out. */
export function leakyBucketQueueProperties(subject: AlgorithmUnderTest): void {
  it('lets calls out at a constant rate, as one server would', () => {
    fc.assert(
      fc.property(shapedSequences, (sequence) => {
        const limit = sequence.limit as RateLimit
        const [units, micros] = [BigInt(limit.rate.units), BigInt(limit.rate.micros)]
        const server = leakyBucketQueueModel(limit)
        let [before, work] = [0n, 0n]
        for (const [index, { ask, verdict }] of admitted(replay(sequence, subject.algorithm)).entries()) {
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
      fc.property(shapedSequences, fc.array(fc.nat(29), { maxLength: 10 }), (sequence, givenUp) => {
        const { units, micros } = (sequence.limit as RateLimit).rate
        const departures = departuresOf(subject, sequence, givenUp)
        for (const [index, { leavesAt, cost }] of departures.entries()) {
          const next = departures[index + 1]
          if (next === undefined) continue
          const gap = BigInt(next.leavesAt - leavesAt + 1) * BigInt(units)
          expect(gap > BigInt(cost) * 1_000_000n * BigInt(micros)).toBe(true)
        }
      }),
      { numRuns: subject.numRuns },
    )
  })
}

interface Departure {
  readonly leavesAt: number
  readonly cost: number
  readonly charge: Charge
}

/** Who leaves when, if some give up their place (by the number of their call) while they wait. */
function departuresOf(
  subject: AlgorithmUnderTest,
  { limit, calls, startMicros }: CallSequence,
  givenUp: readonly number[],
): Departure[] {
  const departures: Departure[] = []
  let state: State = []
  let now = startMicros
  for (const [index, { advanceMicros, cost }] of calls.entries()) {
    now += advanceMicros
    const ask = { now, cost, entitled: true, holder: index + 1 }
    const verdict = decide(subject, limit, { state, ask })
    if (verdict.ruling === 'allowed' && cost > 0) {
      state = stateAfter(verdict)
      const charge = { at: now, cost, mark: verdict.mark, holder: ask.holder }
      departures.push({ leavesAt: now + verdict.delayMicros, cost, charge })
    }
    for (const place of givenUp.filter((number) => (number * 7 + index) % 5 === 0)) {
      const left = departures[place]
      if (left === undefined || left.leavesAt <= now) continue
      state = correct(subject, { limit, state, now, units: -left.cost, charge: left.charge }).state
      departures.splice(place, 1)
    }
  }
  return departures
}
