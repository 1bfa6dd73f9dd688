import type { FailureMode } from '../rule/rule.ts'
import type { Failure } from './store.ts'

/** State of the circuit breaker. `closed`: calls go to the store. `open`: none do. `half-open`: one call probes it. */
export type BreakerState = 'closed' | 'open' | 'half-open'

/**
 * An event between a decorated store and the underlying store, for metrics.
 *
 * - `asked`: a call to the store ended, for its caller, after `micros` microseconds. `misused`: the store rejected the
 *   arguments.
 * - `failed`: there was no usable answer; `error` is undefined after a deadline, or if the store was not asked.
 * - `fell-back`: a check was decided without the store, by the failure mode of `rule`.
 * - `breaker`: the state of the breaker changed.
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
 * Receives events synchronously as they happen, so it should return quickly. Errors that it throws are ignored: they
 * must not fail a check.
 */
export type StoreObserver = (event: StoreEvent) => void

/** Notifies the observer, if there is one. */
export function tell(observe: StoreObserver | undefined, event: StoreEvent): void {
  try {
    observe?.(event)
  } catch {
    // An observer must not fail a check.
  }
}
