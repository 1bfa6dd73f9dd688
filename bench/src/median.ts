/** The middle one of some values by size; of an even number, the upper of the two. NaN when there are none. */
export function medianOf(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}
