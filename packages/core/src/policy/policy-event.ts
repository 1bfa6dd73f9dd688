import type { Block, OverrideTerms } from './entries/live-entry.ts'
import type { PolicyRequest } from './rule-set/policy-request.ts'
import type { UndeclaredDimension } from './rule-set/undeclared-dimensions.ts'

/**
 * An event of an engine, for metrics and logs.
 *
 * - `shadow`: a rule, or a candidate version as a whole, was evaluated without being enforced. `rule` is the one that
 *   would have denied or had the least remaining; `version` is 0 for a rule of the enforced version.
 * - `shadow-failed`: that evaluation failed. The request was not affected.
 * - `blocked`: a caller was blocked, by a penalty or by an operator.
 * - `block-not-kept`: a block is active on this node, but could not be distributed.
 * - `penalty-failed`: a denial could not be counted, or a block could not be written to the store.
 * - `override-unusable`: an override cannot be applied to a rule, whose own numbers apply instead.
 * - `burst-unusable`: a rule cannot take the burst of the tiers, and applies without it. Reported when the rule set is
 *   activated.
 * - `dimension-undeclared`: a rule set uses a dimension that is neither built in nor declared, so its rules may match
 *   no request. Reported when the rule set is activated.
 * - `unmatched`: no enforced rule matched a request.
 */
export type PolicyEvent =
  | {
      readonly type: 'shadow'
      readonly rule: string
      readonly dimension: string
      readonly allowed: boolean
      readonly version: number
    }
  | { readonly type: 'shadow-failed'; readonly error: unknown }
  | { readonly type: 'blocked'; readonly block: Block }
  | { readonly type: 'block-not-kept'; readonly block: Block; readonly error: unknown }
  | { readonly type: 'penalty-failed'; readonly error: unknown }
  | {
      readonly type: 'override-unusable'
      readonly rule: string
      readonly terms: OverrideTerms
      readonly problem: string
    }
  | {
      readonly type: 'burst-unusable'
      readonly rule: string
      readonly tiers: readonly string[]
      readonly problem: string
      /** Number of the version. */
      readonly version: number
    }
  | (UndeclaredDimension & {
      readonly type: 'dimension-undeclared'
      /** Number of the version. */
      readonly version: number
    })
  | { readonly type: 'unmatched'; readonly request: PolicyRequest; readonly version: number }

/**
 * Receives events synchronously as they happen, so it should return quickly. Errors that it throws are ignored: they
 * must not fail a request.
 */
export type PolicyObserver = (event: PolicyEvent) => void

/** Notifies the observer, if there is one. */
export function tellPolicy(observe: PolicyObserver | undefined, event: PolicyEvent): void {
  try {
    observe?.(event)
  } catch {
    // An observer must not fail a request.
  }
}
