import type { Block, OverrideTerms } from './entries/live-entry.ts'
import type { PolicyRequest } from './rule-set/policy-request.ts'
import type { UndeclaredDimension } from './rule-set/undeclared-dimensions.ts'

/**
 * Something worth counting that an engine did.
 *
 * - `shadow`: a rule, or a candidate version as a whole, was evaluated without being enforced. `rule` is the one that
 *   would have denied or had the least remaining; `version` is 0 for a rule of the enforced version.
 * - `shadow-failed`: that could not be done. The request was not touched by it.
 * - `blocked`: a caller was blocked, by a penalty or by an operator.
 * - `block-not-kept`: a block holds on this node, and could not be handed on.
 * - `penalty-failed`: a denial could not be counted, or a block could not be written to the store.
 * - `override-unusable`: an override cannot be applied to a rule, whose own numbers hold instead.
 * - `burst-unusable`: a rule has no room for the burst of the tiers, and goes without. Told when the rule set is put in
 *   force.
 * - `dimension-undeclared`: a rule set uses a dimension that is neither built in nor declared, so its rules may match
 *   no request. Reported when the rule set is put in force.
 * - `unmatched`: a request was decided that no enforced rule matches.
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
 * Receives events synchronously as they happen, so it should return quickly. Errors it throws are ignored: they must
 * not fail a request.
 */
export type PolicyObserver = (event: PolicyEvent) => void

/** Tells an observer, if there is one. */
export function tellPolicy(observe: PolicyObserver | undefined, event: PolicyEvent): void {
  try {
    observe?.(event)
  } catch {
    // An observer must not fail a request.
  }
}
