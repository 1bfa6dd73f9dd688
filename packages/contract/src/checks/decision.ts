import type { DecisionReason, FailureLike } from './check-answer-schema.ts'

/** What stays on this side of the wire, because it may name servers. */
interface SaidByStore {
  /** What the store said last before this, for people; undefined when it said nothing. */
  readonly detail?: string | undefined
}

/** How one of the limits of a decision stands. */
export interface LimitReportLike {
  /** The rule's name; a rule with several windows has several reports. */
  readonly rule: string
  readonly limit: number
  /** Null when it is unknown. */
  readonly remaining: number | null
  /** Milliseconds since 1970; 0 when there is no such instant. */
  readonly resetAt: number
  /** 0 when this limit allows the call, `Infinity` when it never would. */
  readonly retryAfterMs: number
  /** The time that the limit is meant for, in milliseconds. Not announced when absent or 0. */
  readonly windowMs?: number
  /** What is counted, such as `concurrent-requests`. Default: requests. */
  readonly quotaUnit?: string
  /** Names whose quota it is, in a form that tells a stranger nothing, such as a hash. */
  readonly partitionKey?: Uint8Array
  /** False: callers are not told of this limit. Default: true. */
  readonly announce?: boolean | undefined
}

/**
 * What this package needs to know of a decision. Decisions of the library and of the rule engine have this shape;
 * nothing here depends on them, so that a browser can use the same code.
 */
export interface DecisionLike {
  readonly allowed: boolean
  /**
   * Allowed: `allowed`, `exempt` (no rule holds for it), `unlimited` (no rule applies to it). Denied: `limit` (come
   * back later), `never` (the cost can never fit), `blocked`, `denied` (it is on the deny list), `unavailable` (the
   * store could not be asked, and the failure mode of the rule is closed).
   */
  readonly reason: DecisionReason
  /** The rule that decided, or the entry of the deny list or exemption; empty when there is none. */
  readonly rule: string
  /** Units of its limit; `Infinity` when nothing limits the call. */
  readonly limit: number
  /** Whole units left. Null when it is unknown: the store did not answer, and the call was allowed without it. */
  readonly remaining: number | null
  /**
   * When the full limit is there again; milliseconds since 1970, 0 when there is no such instant. Without meaning when
   * `limit` is `Infinity`.
   */
  readonly resetAt: number
  /** Milliseconds until the same call would be allowed; 0 when it is, `Infinity` when waiting does not help. */
  readonly retryAfterMs: number
  /** How long an admitted call must wait for its turn, in milliseconds. Default: no wait. */
  readonly delayMs?: number
  /** One report for each limit that was decided; empty or left out where the decision itself is the only one. */
  readonly limits?: readonly LimitReportLike[]
  /** False: callers are not told of the limit whose numbers these are, only how long to wait. Default: true. */
  readonly announce?: boolean | undefined
  /** Number of the rule set that decided. */
  readonly version?: number
  /** Set when the store could not be asked and this was decided without it. */
  readonly failure?: (FailureLike & SaidByStore) | undefined
}

const MS_PER_SECOND = 1000

/**
 * Whole seconds that are not less than `ms`: callers who wait that long, or until then, never come too early.
 * 0 for what is past; `Infinity` stays.
 */
export function wholeSeconds(ms: number): number {
  return ms > 0 ? Math.ceil(ms / MS_PER_SECOND) : 0
}
