import { invalidOption, requireInteger, requireNumber } from '../option-range.ts'

const MOST_BOUNDS = 200

/**
 * Returns a copy of `bounds` if they are 1 to 200 finite, increasing numbers; otherwise throws
 * `SLUICE_RUNTIME_INVALID_OPTION`.
 */
export function requireBounds(bounds: readonly number[]): Float64Array {
  requireInteger('bounds.length', bounds.length, { min: 1, max: MOST_BOUNDS })
  for (const [index, bound] of bounds.entries()) {
    if (!Number.isFinite(bound) || bound <= (bounds[index - 1] ?? Number.NEGATIVE_INFINITY)) {
      throw invalidOption(`bounds[${index}]`, bound, 'a finite number greater than the one before')
    }
  }
  return Float64Array.from(bounds)
}

/** The bucket of `value`: the first whose bound is not below it, or one past the last. */
export function bucketOf(bounds: Float64Array, value: number): number {
  let from = 0
  let to = bounds.length
  while (from < to) {
    const middle = (from + to) >>> 1
    if (value <= (bounds[middle] as number)) to = middle
    else from = middle + 1
  }
  return from
}

/**
 * Estimates a quantile (0 to 1) of the observations; undefined if there are none.
 *
 * `counts` has one number per bucket and one more, for observations above the last bound. The result is in the same
 * bucket as the exact value, interpolated linearly; the first bucket starts at 0, or at its bound if that is negative.
 * Above the last bound, the result is that bound.
 */
export function bucketQuantile(
  bounds: ArrayLike<number>,
  counts: ArrayLike<number>,
  quantile: number,
): number | undefined {
  requireNumber('quantile', quantile, { min: 0, max: 1 })
  if (counts.length !== bounds.length + 1) {
    throw invalidOption('counts.length', counts.length, `one more than the ${bounds.length} bounds`)
  }
  let total = 0
  for (let bucket = 0; bucket < counts.length; bucket++) total += counts[bucket] as number
  if (total === 0) return undefined
  // Rank of the exact value among the sorted observations, at least 1.
  const rank = Math.max(1, Math.ceil(quantile * total))
  let below = 0
  let bucket = 0
  while (below + (counts[bucket] as number) < rank) {
    below += counts[bucket] as number
    bucket++
  }
  if (bucket === bounds.length) return bounds[bucket - 1]
  const end = bounds[bucket] as number
  const start = bucket === 0 ? Math.min(0, end) : (bounds[bucket - 1] as number)
  return start + ((end - start) * (rank - below)) / (counts[bucket] as number)
}
