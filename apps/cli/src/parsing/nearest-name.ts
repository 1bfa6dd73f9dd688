/**
 * The one of `names` that was probably meant by `text`: the nearest by letters added, left out, changed or swapped, when not more
 * than a third of them are; undefined when none is near.
 */
export function nearestName(text: string, names: readonly string[]): string | undefined {
  let nearest: string | undefined
  let least = Math.max(1, Math.floor(text.length / 3)) + 1
  for (const name of names) {
    const distance = editDistance(text.toLowerCase(), name.toLowerCase())
    if (distance >= least) continue
    least = distance
    nearest = name
  }
  return nearest
}

/** Letters to add, leave out, change or swap with their neighbour to make one text of the other. */
export function editDistance(one: string, other: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let row = 1; row <= one.length; row++) {
    const next = [row]
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[row - 1] === other[column - 1]
      let least = Math.min(last[column]! + 1, next[column - 1]! + 1, last[column - 1]! + (isSame ? 0 : 1))
      const isSwapped =
        row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]
      if (isSwapped) least = Math.min(least, beforeLast[column - 2]! + 1)
      next.push(least)
    }
    beforeLast = last
    last = next
  }
  return last[other.length]!
}
