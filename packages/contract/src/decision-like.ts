/**
 * What this package needs to know of a decision. Decisions of the library have this shape; nothing here depends on the
 * library, so that a browser can use the same code.
 */
export interface DecisionLike {
  readonly allowed: boolean
  /** `allowed`, or why not: `limit` (come back later), `never` (the cost can never fit), `blocked`. */
  readonly reason: 'allowed' | 'limit' | 'never' | 'blocked' | 'unavailable'
  /** The rule that decided. */
  readonly rule: string
  /** Units of its limit; `Infinity` when nothing limits the call. */
  readonly limit: number
  /** Whole units left. */
  readonly remaining: number
  /** When the full limit is there again; milliseconds since 1970. Without meaning when `limit` is `Infinity`. */
  readonly resetAt: number
  /** Milliseconds until the same call would be allowed; 0 when it is, `Infinity` when waiting does not help. */
  readonly retryAfterMs: number
}
