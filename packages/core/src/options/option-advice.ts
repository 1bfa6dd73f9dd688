/** Names of the two basic options of every limit in other libraries. */
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
  window: 'Write "window": a string with its unit, such as "1m", or milliseconds.',
} as const

/**
 * Advice about an unknown option: the one of `known` with that name in another library, or with a similar spelling.
 * Undefined if the intention is unclear.
 */
export function optionAdvice(option: string, known: readonly string[]): string | undefined {
  const other = Object.hasOwn(OTHER_NAMES, option) ? OTHER_NAMES[option] : undefined
  if (other !== undefined && known.includes(other)) return MEANING[other]
  const near = nearestName(option, known)
  return near === undefined ? undefined : `Did you mean "${near}"?`
}

/** Advice about a value that should be a number but is not; undefined if the intention is unclear. */
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
 * The one of `known` that `name` is probably a typo of: a few letters missing, extra, changed or swapped, in any case.
 * Undefined if none is similar.
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

/** Number of letters to insert, delete, change or swap with their neighbour. */
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
