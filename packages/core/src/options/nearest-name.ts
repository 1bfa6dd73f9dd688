/** Longer names are not compared: nobody mistypes them. */
const LONGEST_COMPARED = 64

/**
 * The one of `known` that somebody who wrote `name` may have meant: few letters are missing, too much, changed or swapped,
 * in any case. Undefined when none is near.
 */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  if (name.length > LONGEST_COMPARED) return undefined
  const written = name.toLowerCase()
  let nearest: string | undefined
  let least = Math.max(1, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    const distance = editDistance(written, candidate.toLowerCase())
    if (distance >= least) continue
    least = distance
    nearest = candidate
  }
  return nearest
}

/** How many letters have to be put in, taken out, changed or swapped with their neighbour. */
function editDistance(one: string, other: string): number {
  let before: number[] = []
  let last = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let row = 1; row <= one.length; row++) {
    const current = [row]
    for (let column = 1; column <= other.length; column++) {
      const change = one[row - 1] === other[column - 1] ? 0 : 1
      let least = Math.min(last[column]! + 1, current[column - 1]! + 1, last[column - 1]! + change)
      if (one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1] && row > 1 && column > 1) {
        least = Math.min(least, before[column - 2]! + 1)
      }
      current.push(least)
    }
    ;[before, last] = [last, current]
  }
  return last[other.length]!
}
