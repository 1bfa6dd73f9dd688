import { usageError } from '../cli-error.ts'
import { durationMs, instantMs } from './duration.ts'
import type { Flag, FlagKind, FlagValues } from './flag.ts'
import { shown } from './shown.ts'

type Reader<K extends FlagKind> = (text: string, nowMs: number) => FlagValues[K] | undefined

/** How each kind is read, and what it must be. */
const KINDS: { readonly [K in Exclude<FlagKind, 'switch' | 'texts'>]: readonly [Reader<K>, expected: string] } = {
  text: [(text) => (text === '' ? undefined : text), 'a text that is not empty'],
  whole: [(text) => (/^\d{1,15}$/.test(text) ? Number(text) : undefined), 'a whole number, 0 or more'],
  number: [(text) => (/^-?\d{1,15}(?:\.\d{1,9})?$/.test(text) ? Number(text) : undefined), 'a number'],
  duration: [durationMs, 'a duration such as 30s, 5m or 1h30m'],
  instant: [
    (text, nowMs) => instantMs(text) ?? plus(nowMs, durationMs(text)),
    'a date such as 2027-01-01 or 2027-01-01T12:00:00Z, or a duration from now such as 30d',
  ],
}

/** The value of a flag, read; throws when it cannot be. */
export function readFlagValue(name: string, flag: Flag, { text, nowMs }: { text: string; nowMs: number }): unknown {
  const [read, expected] = KINDS[flag.kind === 'texts' || flag.kind === 'switch' ? 'text' : flag.kind]
  const value = read(text, nowMs)
  const isChoice = flag.choices === undefined || flag.choices.includes(text)
  if (value !== undefined && isChoice) return value
  const wanted = flag.choices === undefined ? expected : `one of ${flag.choices.join(', ')}`
  throw usageError(`--${name} got ${shown(text)}; expected ${wanted}.`)
}

function plus(nowMs: number, ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(nowMs + ms)
}
