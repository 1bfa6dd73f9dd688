import type { Remaining } from '../../limiter/decision.ts'
import type { Failure } from '../../store/store.ts'
import type { CurrentLimit, DescriptorRule } from './descriptor-rule.ts'
import type { MatchKind } from './descriptor-tree.ts'

/** `over`: denied. */
export type DescriptorCode = 'ok' | 'over'

/** How one descriptor stands. */
export interface DescriptorStatus {
  /** What to answer. Never `over` in shadow; in quota mode only when the request is denied for its quotas. */
  readonly code: DescriptorCode
  /** Whether the limit itself says no, whatever is answered. */
  readonly isOver: boolean
  /** `replaced`: another limit of the request took its place. */
  readonly matched: MatchKind | 'replaced'
  /** Undefined when nothing was counted. */
  readonly limit: CurrentLimit | undefined
  /**
   * Units left: 0 when nothing was counted, 4,294,967,295 when the rule does not limit. Null when the store did not
   * answer and the request was allowed without it.
   */
  readonly remaining: Remaining
  /**
   * Whole seconds, rounded up: until all is free again or, when denied, until the call can be repeated. 0 when nothing
   * was counted, and when it is unknown.
   */
  readonly resetAfterSeconds: number
  /** The rule that was found, or made of the limit that came with the request; undefined when there is none. */
  readonly rule: DescriptorRule | undefined
}

/** The answer to a request by descriptors. */
export interface DescriptorDecision {
  readonly code: DescriptorCode
  /** One for each descriptor, in their order. */
  readonly statuses: readonly DescriptorStatus[]
  /** The first status with the least left, used for headers. Undefined when nothing was counted. */
  readonly least: DescriptorStatus | undefined
  /** Set when the store could not be asked and this was decided without it; else undefined. */
  readonly failure: Failure | undefined
}
