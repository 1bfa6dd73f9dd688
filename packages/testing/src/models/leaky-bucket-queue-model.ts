import type { Limit } from '@sluice/core/store'

const MICRO = 1_000_000n

/** One server that works off calls in the order they came, without any rounding: the ideal of a shaper. */
export interface LeakyBucketQueueModel {
  /** How long a call that comes at `now` would wait before it is served, in microseconds rounded up. */
  waitMicros(now: number): number
  /** Adds a call of `cost` units to the end of the queue. */
  join(now: number, cost: number): void
}

/**
 * The ideal departures under a rate. Time is counted in `units`-ths of a microsecond, so that every instant is whole.
 */
export function leakyBucketQueueModel(limit: Extract<Limit, { rate: unknown }>): LeakyBucketQueueModel {
  const units = BigInt(limit.rate.units)
  const micros = BigInt(limit.rate.micros)
  let freeAt = 0n
  const startAt = (now: number): bigint => {
    const scaled = BigInt(now) * units
    return freeAt > scaled ? freeAt : scaled
  }
  return {
    waitMicros: (now) => Number((startAt(now) - BigInt(now) * units + units - 1n) / units),
    join(now, cost) {
      freeAt = startAt(now) + BigInt(cost) * MICRO * micros
    },
  }
}
