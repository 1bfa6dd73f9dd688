import type { Algorithm, Ask, State, Verdict } from '@sluice/core/store'
import { algorithmOf, createVerdict } from '@sluice/core/store'
import type { CallSequence } from '../../properties/arbitraries.ts'

/** One call that an algorithm answered. */
export interface ReplayedCall {
  /** The state that the call met; frozen. */
  readonly state: State
  readonly ask: Readonly<Ask>
  readonly verdict: Verdict
  /** The state that the call left; frozen. */
  readonly after: State
}

/**
 * Lets an algorithm answer a sequence of calls, as a store would: an allowed call that costs something stores the new
 * state, any other leaves the old one.
 */
export function replay(sequence: CallSequence, algorithm: Algorithm = algorithmOf(sequence.limit)): ReplayedCall[] {
  const { limit, calls } = sequence
  const plays: ReplayedCall[] = []
  let state: State = Object.freeze([])
  let now = sequence.startMicros
  for (const [index, { advanceMicros, cost, entitled }] of calls.entries()) {
    now += advanceMicros
    const ask = Object.freeze({ now, cost, entitled, holder: index + 1 })
    const verdict = createVerdict()
    algorithm.decide(state, limit, ask, verdict)
    const after =
      verdict.ruling === 'allowed' && cost > 0 ? Object.freeze(verdict.next.slice(0, verdict.nextLength)) : state
    plays.push({ state, ask, verdict, after })
    state = after
  }
  return plays
}

/** The calls that were let in and cost something, in order. */
export function admitted(plays: readonly ReplayedCall[]): readonly ReplayedCall[] {
  return plays.filter(({ ask, verdict }) => verdict.ruling === 'allowed' && ask.cost > 0)
}
