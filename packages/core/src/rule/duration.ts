import { SluiceError } from '../errors.ts'
import { MICROS_PER_MS } from '../system/clock-and-timers.ts'

type DurationUnit = 'ms' | 's' | 'm' | 'h' | 'd' | 'w'

/**
 * A length of time: a number of milliseconds, or a string of number and unit (`'250ms'`, `'10 s'`, `'1m'`, `'1h'`,
 * `'7d'`, `'2w'`), also several in a row (`'1h30m'`).
 */
export type Duration =
  | number
  | `${number}${DurationUnit}`
  | `${number} ${DurationUnit}`
  | `${number}${DurationUnit}${number}${DurationUnit}`

const UNIT_MS: Readonly<Record<DurationUnit, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

/** Longest accepted duration: 100 years. Longer ones are taken for mistakes of unit. */
const LONGEST_MS = 100 * 366 * UNIT_MS.d

const ONE_PART = /(\d+(?:\.\d+)?)\s?(ms|s|m|h|d|w)/gy

/**
 * The duration in milliseconds: above 0, at most 100 years, in whole microseconds (three decimals). Throws
 * `SLUICE_INVALID_DURATION`, naming `option`, for anything else, such as zero or a string without a unit.
 */
export function durationMs(duration: unknown, option: string): number {
  const ms = typeof duration === 'number' ? duration : parseDurationMs(duration)
  if (!(ms > 0) || ms > LONGEST_MS || !isWholeMicros(ms)) {
    throw new SluiceError('SLUICE_INVALID_DURATION', {
      problem: `"${option}" is not a usable duration`,
      received: duration,
      expected: 'milliseconds above 0 and at most 100 years, as a number or a string such as "250ms", "1m" or "1h30m"',
      action: adviceFor(duration) ?? `Give "${option}" with its unit, for example "1m".`,
    })
  }
  return ms
}

const IN_WORDS = /^\s*(\d+(?:\.\d+)?)\s*(millisec|msec|sec|min|hour|hr|day|week)[a-z]*\s*$/i

const UNIT_OF_WORD: Readonly<Record<string, DurationUnit>> = {
  millisec: 'ms',
  msec: 'ms',
  sec: 's',
  min: 'm',
  hour: 'h',
  hr: 'h',
  day: 'd',
  week: 'w',
}

/** What to write instead of a string in words, or of a number without a unit. */
function adviceFor(duration: unknown): string | undefined {
  if (typeof duration !== 'string') return undefined
  const [, amount, word] = IN_WORDS.exec(duration) ?? []
  if (amount !== undefined && word !== undefined) return `Write "${amount}${UNIT_OF_WORD[word.toLowerCase()]}".`
  const number = duration.trim()
  if (!/^\d+(?:\.\d+)?$/.test(number)) return undefined
  return `Write "${number}s" for seconds, or "${number}ms" for milliseconds.`
}

/** The duration in whole microseconds; otherwise as {@link durationMs}. */
export function durationMicros(duration: unknown, option: string): number {
  return Math.round(durationMs(duration, option) * MICROS_PER_MS)
}

/** Three decimals at most. A decimal such as 1.001 is not exactly itself in a double, nor is its product with 1000. */
function isWholeMicros(ms: number): boolean {
  const micros = ms * MICROS_PER_MS
  return Math.abs(micros - Math.round(micros)) <= micros * Number.EPSILON
}

/** Milliseconds of a string such as `1h30m`, 0 included; NaN for anything else. */
export function parseDurationMs(text: unknown): number {
  if (typeof text !== 'string' || text.length === 0 || text.length > 40) return Number.NaN
  let total = 0
  let index = 0
  ONE_PART.lastIndex = 0
  for (let part = ONE_PART.exec(text); part !== null; part = ONE_PART.exec(text)) {
    const [all, amount, unit] = part
    total += Number(amount) * UNIT_MS[unit as DurationUnit]
    index += all.length
  }
  return index === text.length ? Math.round(total * 1000) / 1000 : Number.NaN
}
