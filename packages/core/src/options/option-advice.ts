/** What other libraries call the two options that every limit has. */
const OTHER_NAMES: Readonly<Record<string, 'limit' | 'window'>> = {
  max: 'limit',
  maxRequests: 'limit',
  points: 'limit',
  requests: 'limit',
  tokens: 'limit',
  tokensPerInterval: 'limit',
  windowMs: 'window',
  timeWindow: 'window',
  duration: 'window',
  interval: 'window',
  period: 'window',
  ttl: 'window',
}

const MEANING = {
  limit: 'Write "limit": the units in each window.',
  window: 'Write "window": a text with its unit, such as "1m", or milliseconds.',
} as const

/**
 * What to do about an option that there is not: the one of `known` that another library calls so, or that is spelt
 * nearly so. Undefined when there is no telling what was meant.
 */
export function optionAdvice(option: string, known: readonly string[]): string | undefined {
  const other = Object.hasOwn(OTHER_NAMES, option) ? OTHER_NAMES[option] : undefined
  if (other !== undefined && known.includes(other)) return MEANING[other]
  const near = nearestName(option, known)
  return near === undefined ? undefined : `Did you mean "${near}"?`
}

/**
 * What to do about the value of an option that is to be a number and is none; undefined when there is no telling what
 * was meant.
 */
export function numberAdvice(
  option: string,
  value: unknown,
  isUsable: (value: number) => boolean = Number.isSafeInteger,
): string | undefined {
  if (value === undefined) return `Add "${option}".`
  const isNumberInText = typeof value === 'string' && value.trim() !== '' && isUsable(Number(value))
  return isNumberInText ? `Write the number without quotes: ${option}: ${Number(value)}.` : undefined
}

/** Longer names are not compared: they are not typos. */
const LONGEST_COMPARED = 64

/**
 * The one of `known` that is probably meant by `name`: few letters are missing, too much, changed or swapped,
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
