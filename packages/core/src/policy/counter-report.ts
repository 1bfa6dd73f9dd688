import { carriedBy } from '../algorithms/fixed-window.ts'
import type { Limit } from '../rule/limit.ts'
import { createBatch, createItem } from '../store/batch.ts'
import type { Batch, Item } from '../store/store.ts'
import { MICROS_PER_MS } from '../system/clock-and-timers.ts'

/** How one counter stands. */
export interface CounterReport {
  /** Units announced to callers as the limit. */
  readonly limit: number
  /**
   * Whole units in use: 0 for a caller that never called, whatever burst it may use. Null when the store did not
   * answer.
   */
  readonly used: number | null
  /**
   * Whole units left now: more than the limit where a burst or units carried over come on top, fewer where a burst is
   * less. Null when the store did not answer.
   */
  readonly remaining: number | null
  /**
   * When the full limit is available again if nothing more is taken; milliseconds since 1970, rounded up. 0 when
   * unknown.
   */
  readonly resetAt: number
  /** Milliseconds since 1970 until which the caller is blocked under the rule; 0 when it is not. */
  readonly blockedUntil: number
}

/** A question that asks how limits stand for a key, and takes nothing. */
export function lookAt(limits: readonly Limit[], key: string): Batch {
  const batch = createBatch(limits.map((limit) => createItem(limit, key, 0)))
  batch.charge = false
  return batch
}

/** The answers to {@link lookAt}, one for each limit. */
export function counterReports(batch: Batch): readonly CounterReport[] {
  const { failure } = batch
  return batch.items.map((item) => {
    const { limit, verdict, blockedUntil } = item
    // `local` reports what this node counted. The other modes count nothing.
    if (failure !== undefined && failure.mode !== 'local') {
      return { limit: limit.limit, used: null, remaining: null, resetAt: 0, blockedUntil: 0 }
    }
    return {
      limit: limit.limit,
      used: Math.max(0, wholeOf(item) - verdict.remaining),
      remaining: blockedUntil > batch.now ? 0 : verdict.remaining,
      resetAt: Math.ceil(verdict.resetAt / MICROS_PER_MS),
      blockedUntil: blockedUntil > batch.now ? Math.ceil(blockedUntil / MICROS_PER_MS) : 0,
    }
  })
}

/**
 * What would be left if nothing were in use: a meter counts from its burst, a window from what it carries over as well,
 * a bucket with rollover from its capacity.
 */
function wholeOf({ limit, verdict }: Item): number {
  if (limit.algorithm === 'token-bucket-rollover') return limit.limit
  return limit.algorithm === 'fixed-window' ? limit.limit + carriedBy(limit, verdict) : limit.capacity
}
