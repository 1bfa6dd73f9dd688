import { nearestName } from './nearest-name.ts'

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
 * What to do about an option that there is not: the one of `known` that another library calls so, or that is spelt nearly so.
 * Undefined when there is no telling what was meant.
 */
export function optionAdvice(option: string, known: readonly string[]): string | undefined {
  const other = Object.hasOwn(OTHER_NAMES, option) ? OTHER_NAMES[option] : undefined
  if (other !== undefined && known.includes(other)) return MEANING[other]
  const near = nearestName(option, known)
  return near === undefined ? undefined : `Did you mean "${near}"?`
}

/** What to do about the value of an option that is to be a number and is none; undefined when there is no telling what was meant. */
export function numberAdvice(
  option: string,
  value: unknown,
  isUsable: (value: number) => boolean = Number.isSafeInteger,
): string | undefined {
  if (value === undefined) return `Add "${option}".`
  const isNumberInText = typeof value === 'string' && value.trim() !== '' && isUsable(Number(value))
  return isNumberInText ? `Write the number without quotes: ${option}: ${Number(value)}.` : undefined
}
