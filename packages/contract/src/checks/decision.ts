import type { DecisionReason, FailureLike } from './check-answer-schema.ts'

/** Not sent to clients, because it may name servers. */
interface SaidByStore {
  /** The last error of the store, for people; undefined if there was none. */
  readonly detail?: string | undefined
}

/** State of one of the limits of a decision. */
export interface LimitReportLike {
  /** The rule's name; a rule with several windows has several reports. */
  readonly rule: string
  readonly limit: number
  /** Null if unknown. */
  readonly remaining: number | null
  /** Milliseconds since 1970; 0 if there is no such instant. */
  readonly resetAt: number
  /** 0 if this limit allows the call, `Infinity` if it never would. */
  readonly retryAfterMs: number
  /** The window of the limit in milliseconds. Not announced if absent or 0. */
  readonly windowMs?: number
  /** What is counted, such as `concurrent-requests`. Default: requests. */
  readonly quotaUnit?: string
  /** Identifies whose quota it is without revealing it, such as a hash. */
  readonly partitionKey?: Uint8Array
  /** False: callers are not told about this limit. Default: true. */
  readonly announce?: boolean | undefined
}

/**
 * The part of a decision that this package needs. Decisions of the library and of the rule engine have this shape;
 * nothing here depends on them, so a browser can use the same code.
 */
export interface DecisionLike {
  readonly allowed: boolean
  /**
   * Allowed: `allowed`, `exempt`, `unlimited` (no rule applies). Denied: `limit` (retry later), `never` (the cost can
   * never fit), `blocked`, `denied` (it is on the deny list), `unavailable` (the store did not answer, and the failure
   * mode of the rule is closed).
   */
  readonly reason: DecisionReason
  /** The rule that decided, or the entry of the deny list or exemption; empty if there is none. */
  readonly rule: string
  /** Units of its limit; `Infinity` if nothing limits the call. */
  readonly limit: number
  /** Whole units left. Null if unknown: the store did not answer, and the call was allowed without it. */
  readonly remaining: number | null
  /**
   * When the full limit is available again; milliseconds since 1970, 0 if there is no such instant. Meaningless if
   * `limit` is `Infinity`.
   */
  readonly resetAt: number
  /** Milliseconds until the same call would be allowed; 0 if it is, `Infinity` if waiting does not help. */
  readonly retryAfterMs: number
  /** How long an admitted call must wait before it runs, in milliseconds. Default: no wait. */
  readonly delayMs?: number
  /** One report per decided limit; empty or absent if the decision itself is the only one. */
  readonly limits?: readonly LimitReportLike[]
  /** False: callers learn only how long to wait, not the numbers of the limit. Default: true. */
  readonly announce?: boolean | undefined
  /** Number of the rule set that decided. */
  readonly version?: number
  /** Set if the decision was made without the store. */
  readonly failure?: (FailureLike & SaidByStore) | undefined
}

const MS_PER_SECOND = 1000

/** `ms` in whole seconds, rounded up, so that callers never retry too early. 0 for the past; `Infinity` stays. */
export function wholeSeconds(ms: number): number {
  return ms > 0 ? Math.ceil(ms / MS_PER_SECOND) : 0
}
