import type { Algorithm, Ask, Charge, Limit, State, Verdict } from '@sluice/core/store'
import { createVerdict } from '@sluice/core/store'
import fc from 'fast-check'
import type { AlgorithmName, CallSequence } from '../../properties/arbitraries.ts'
import { callSequences } from '../../properties/arbitraries.ts'
import type { ReplayedCall } from './replay.ts'
import { replay } from './replay.ts'

/** An implementation under test. */
export interface AlgorithmUnderTest {
  readonly name: AlgorithmName
  readonly algorithm: Algorithm
  /** Random sequences for each property. */
  readonly numRuns: number
}

/** The answer to a question. */
export function decide(
  { algorithm }: AlgorithmUnderTest,
  limit: Limit,
  { state, ask }: { state: State; ask: Readonly<Ask> },
): Verdict {
  const verdict = createVerdict()
  algorithm.decide(state, limit, ask, verdict)
  return verdict
}

/** The state that an allowing verdict leaves. */
export function stateAfter(verdict: Verdict): State {
  return verdict.next.slice(0, verdict.nextLength)
}

/** What a verdict says to the caller, without what is for the store. */
export function answersOf({ ruling, remaining, resetAt, retryAt, delayMicros }: Verdict): object {
  return { ruling, remaining, resetAt, retryAt, delayMicros }
}

/** A correction, of whom, at what time, by how much. */
export interface Correcting {
  readonly limit: Limit
  readonly state: State
  readonly now: number
  readonly units: number
  readonly charge: Charge
}

/** Corrects a charge, and what that leaves. */
export function correct(
  { algorithm }: AlgorithmUnderTest,
  { limit, state, ...correction }: Correcting,
): { readonly applied: number | undefined; readonly state: State; readonly freshAt: number } {
  const verdict = createVerdict()
  const applied = algorithm.correct(state, limit, correction, verdict)
  return { applied, state: Object.freeze(stateAfter(verdict)), freshAt: verdict.freshAt }
}

/** Checks something about every call of random sequences. */
export function forEachCall(
  { algorithm, name, numRuns }: AlgorithmUnderTest,
  check: (one: ReplayedCall, sequence: CallSequence, index: number) => void,
): void {
  fc.assert(
    fc.property(callSequences(name), (sequence) => {
      for (const [index, one] of replay(sequence, algorithm).entries()) check(one, sequence, index)
    }),
    { numRuns },
  )
}

/** One call of a sequence that was charged. */
export interface Charged {
  readonly play: ReplayedCall
  readonly charge: Charge
  readonly limit: Limit
}

/** The sequence around it. */
export interface Surroundings {
  readonly plays: readonly ReplayedCall[]
  readonly index: number
  readonly sequence: CallSequence
}

/** Checks something about every call of random sequences that was charged. */
export function forEachCharge(
  subject: AlgorithmUnderTest,
  check: (charged: Charged, around: Surroundings) => void,
): void {
  fc.assert(
    fc.property(callSequences(subject.name), (sequence) => {
      const plays = replay(sequence, subject.algorithm)
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
