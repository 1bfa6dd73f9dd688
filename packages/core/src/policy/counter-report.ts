import { carriedBy } from '../algorithms/fixed-window.ts'
import type { Limit } from '../rule/limit.ts'
import { createBatch, createItem } from '../store/batch.ts'
import type { Batch, Item } from '../store/store.ts'
import { MICROS_PER_MS } from '../system/clock-and-timers.ts'

/** State of one counter. */
export interface CounterReport {
  /** The limit as announced to callers, in units. */
  readonly limit: number
  /**
   * Whole units in use: 0 for a caller that never called, regardless of the burst. Null if the store did not answer.
   */
  readonly used: number | null
  /**
   * Whole units left: more than the limit with a burst or units carried over, fewer with a smaller burst. Null if the
   * store did not answer.
   */
  readonly remaining: number | null
  /**
   * When the full limit is available again if nothing more is charged; milliseconds since 1970, rounded up. 0 if
   * unknown.
   */
  readonly resetAt: number
  /** Milliseconds since 1970 until which the rule blocks the caller; 0 if it does not. */
  readonly blockedUntil: number
}

/** A batch that reads the state of limits for a key, without charging. */
export function lookAt(limits: readonly Limit[], key: string): Batch {
  const batch = createBatch(limits.map((limit) => createItem(limit, key, 0)))
  batch.charge = false
  return batch
}

/** The results of {@link lookAt}, one per limit. */
export function counterReports(batch: Batch): readonly CounterReport[] {
  const { failure } = batch
  return batch.items.map((item) => {
    const { limit, verdict, blockedUntil } = item
    // `local` reports the counters of this node. The other modes count nothing.
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
 * What would remain if nothing were in use: a meter counts from its burst, a window includes carried-over units, a
 * bucket with rollover counts from its capacity.
 */
function wholeOf({ limit, verdict }: Item): number {
  if (limit.algorithm === 'token-bucket-rollover') return limit.limit
  return limit.algorithm === 'fixed-window' ? limit.limit + carriedBy(limit, verdict) : limit.capacity
}
