import type { FailureMode } from '../rule/rule.ts'
import type { Failure } from './store.ts'

/** Whether a store is asked: `closed` yes, `open` no, `half-open` by one call to see whether it is back. */
export type BreakerState = 'closed' | 'open' | 'half-open'

/**
 * Something worth counting that happened between a decorated store and the store beneath.
 *
 * - `asked`: a call to the store ended, for its caller, after so many microseconds. `misused`: the store pointed out a
 *   mistake.
 * - `failed`: there was no usable answer; `error` is undefined at a deadline and when the store was not asked.
 * - `fell-back`: a check was decided without the store; `rule` is the one whose mode it was.
 * - `breaker`: the breaker changed its state.
 * - `late-answer`: an answer came after its deadline. `givenBack`: it was a charge of a denied caller, and was
 *   returned.
 * - `remembered`: a check was denied from memory.
 */
export type StoreEvent =
  | { readonly type: 'asked'; readonly micros: number; readonly outcome: 'answered' | 'failed' | 'misused' }
  | {
      readonly type: 'failed'
      readonly cause: Failure['cause']
      readonly charged: Failure['charged']
      readonly error: unknown
    }
  | { readonly type: 'fell-back'; readonly mode: FailureMode; readonly rule: string }
  | { readonly type: 'breaker'; readonly state: BreakerState }
  | { readonly type: 'late-answer'; readonly allowed: boolean; readonly givenBack: boolean }
  | { readonly type: 'remembered'; readonly rule: string }

/**
 * Is told of events, as they happen: it should be quick. What it throws is ignored, because a check is not its
 * business.
 */
export type StoreObserver = (event: StoreEvent) => void

/** Tells an observer, if there is one. */
export function tell(observe: StoreObserver | undefined, event: StoreEvent): void {
  try {
    observe?.(event)
  } catch {
    // A check must not fail because somebody counts it.
  }
}
