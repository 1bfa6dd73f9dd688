/** Items that are sorted, or merged, before others have a turn: a few milliseconds. */
const ITEMS_PER_TURN = 10_000

/** How to sort. */
export interface SortOptions<T> {
  readonly compare: (one: T, other: T) => number
  /** Lets others in this process have a turn. */
  readonly nextTurn: () => Promise<void>
}

/** Sorts like `toSorted` (stable), yielding to the event loop regularly. */
export async function cooperativeSort<T>(items: readonly T[], options: SortOptions<T>): Promise<readonly T[]> {
  const { compare, nextTurn } = options
  let runs: (readonly T[])[] = []
  for (let start = 0; start < items.length; start += ITEMS_PER_TURN) {
    runs.push(items.slice(start, start + ITEMS_PER_TURN).sort(compare))
    await nextTurn()
  }
  while (runs.length > 1) {
    const longer: (readonly T[])[] = []
    for (let index = 0; index < runs.length; index += 2) {
      const [one, other] = [runs[index]!, runs[index + 1]]
      longer.push(other === undefined ? one : await merge(one, other, options))
    }
    runs = longer
  }
  return runs[0] ?? []
}

async function merge<T>(one: readonly T[], other: readonly T[], options: SortOptions<T>): Promise<readonly T[]> {
  const { compare, nextTurn } = options
  const merged: T[] = []
  let left = 0
  let right = 0
  while (left < one.length && right < other.length) {
    merged.push(compare(one[left]!, other[right]!) <= 0 ? one[left++]! : other[right++]!)
    if (merged.length % ITEMS_PER_TURN === 0) await nextTurn()
  }
  for (; left < one.length; left++) merged.push(one[left]!)
  for (; right < other.length; right++) merged.push(other[right]!)
  return merged
}
