import type { Remaining } from '../../limiter/decision.ts'
import type { Failure } from '../../store/store.ts'
import type { CurrentLimit, DescriptorRule } from './descriptor-rule.ts'
import type { MatchKind } from './descriptor-tree.ts'

/** Metadata of descriptor rules: any JSON. */
export type DescriptorMetadata = Readonly<Record<string, unknown>>

/** `over`: denied. */
export type DescriptorCode = 'ok' | 'over'

/** Status of one descriptor. */
export interface DescriptorStatus {
  /** The code to answer with: never `over` in shadow. In quota mode, `over` does not have to deny the request. */
  readonly code: DescriptorCode
  /** Whether the limit itself denies, whatever the answer is. */
  readonly isOver: boolean
  /** Whether it denies the request. */
  readonly denies: boolean
  /** `replaced`: another limit of the request took its place. */
  readonly matched: MatchKind | 'replaced'
  /** Undefined if nothing was counted. */
  readonly limit: CurrentLimit | undefined
  /**
   * Units left: 0 if nothing was counted, 4,294,967,295 if the rule does not limit. Null if the store did not answer
   * and the request was allowed without it.
   */
  readonly remaining: Remaining
  /**
   * Whole seconds, rounded up: until the limit is fully available or, if denied, until the call can be repeated. 0 if
   * nothing was counted or the time is unknown.
   */
  readonly resetAfterSeconds: number
  /** The matching rule, or the limit that the request itself carries. Undefined if there is none. */
  readonly rule: DescriptorRule | undefined
}

/** The decision on a request with descriptors. */
export interface DescriptorDecision {
  readonly code: DescriptorCode
  /** One per descriptor, in their order. */
  readonly statuses: readonly DescriptorStatus[]
  /** The first status with the fewest remaining units, used for headers. Undefined if nothing was counted. */
  readonly least: DescriptorStatus | undefined
  /**
   * Metadata of the matching rules that are not used up, such as backends that still have quota. Of two values with the
   * same name the first one wins; objects are merged. Undefined if there is none.
   */
  readonly metadata: DescriptorMetadata | undefined
  /** Set if the decision was made without the store. */
  readonly failure: Failure | undefined
}
