import { usageError } from '../output/cli-error.ts'
import { quoted } from '../output/text.ts'

/** Kinds of flags and their parsed values. */
interface FlagValues {
  readonly text: string
  /** Repeatable. */
  readonly texts: readonly string[]
  /** An integer, 0 or more. */
  readonly whole: number
  readonly number: number
  /** Milliseconds. */
  readonly duration: number
  /** Milliseconds since 1970: a date, or a duration from now. */
  readonly instant: number
  /** No value: present or absent. */
  readonly switch: boolean
}

type FlagKind = keyof FlagValues

/** A flag of a command. */
export interface Flag<K extends FlagKind = FlagKind, C extends string = string> {
  readonly kind: K
  /** Placeholder for its value in the help, such as `<name>`; empty for a switch. */
  readonly argument: string
  /** Purpose and default. */
  readonly help: string
  /** Allowed values. Default: any. */
  readonly choices?: readonly C[]
}

/** Flags by name, without the two dashes. */
export type Flags = Readonly<Record<string, Flag>>

type FlagValue<F extends Flag> =
  F extends Flag<infer K, infer C>
    ? K extends 'switch'
      ? boolean
      : K extends 'texts'
        ? readonly string[]
        : (K extends 'text' ? C : FlagValues[K]) | undefined
    : never

/** Parsed values. An absent flag is undefined, false for a switch, or an empty list for `texts`. */
export type GivenFlags<F extends Flags> = { readonly [Name in keyof F]: FlagValue<F[Name]> }

/** A flag with a value of this kind. */
export function flag<K extends Exclude<FlagKind, 'switch'>>(kind: K, argument: string, help: string): Flag<K> {
  return { kind, argument, help }
}

/** A flag whose value is one of `choices`. */
export function choice<const C extends string>(choices: readonly C[], help: string): Flag<'text', C> {
  return { kind: 'text', argument: `<${choices.join('|')}>`, help, choices }
}

/** A flag without a value. */
export function toggle(help: string): Flag<'switch'> {
  return { kind: 'switch', argument: '', help }
}

type PositionalCount = 'needed' | 'optional' | 'several'

/** A positional argument. */
interface Positional<C extends PositionalCount = PositionalCount> {
  readonly count: C
  readonly help: string
}

/** Positional arguments by name, in order. Only the last may be optional or repeated. */
export type Positionals = Readonly<Record<string, Positional>>

type PositionalValue<C extends PositionalCount> = C extends 'needed'
  ? string
  : C extends 'optional'
    ? string | undefined
    : readonly string[]

export type GivenPositionals<P extends Positionals> = { readonly [Name in keyof P]: PositionalValue<P[Name]['count']> }

/** A required argument. */
export function needed(help: string): Positional<'needed'> {
  return { count: 'needed', help }
}

/** An optional argument. */
export function optional(help: string): Positional<'optional'> {
  return { count: 'optional', help }
}

/** One or more arguments. */
export function several(help: string): Positional<'several'> {
  return { count: 'several', help }
}

/** `<file>`, `[<version>]` or `<file>...`, as the help shows it. */
export function placeholder(name: string, { count }: Positional): string {
  if (count === 'needed') return `<${name}>`
  return count === 'optional' ? `[<${name}>]` : `<${name}>...`
}

type Reader<K extends FlagKind> = (text: string, nowMs: number) => FlagValues[K] | undefined

/** Parser of each kind, and what it expects. */
const KINDS: { readonly [K in Exclude<FlagKind, 'switch' | 'texts'>]: readonly [Reader<K>, expected: string] } = {
  text: [(text) => (text === '' ? undefined : text), 'a non-empty string'],
  whole: [(text) => (/^\d{1,15}$/.test(text) ? Number(text) : undefined), 'a whole number, 0 or more'],
  number: [(text) => (/^-?\d{1,15}(?:\.\d{1,9})?$/.test(text) ? Number(text) : undefined), 'a number'],
  duration: [parseDuration, 'a duration such as 30s, 5m or 1h30m'],
  instant: [
    (text, nowMs) => parseInstant(text) ?? plus(nowMs, parseDuration(text)),
    'a date such as 2027-01-01 or 2027-01-01T12:00:00Z, or a duration from now such as 30d',
  ],
}

/** Parses the value of a flag. Throws `SLUICE_CLI_USAGE` if it is invalid. */
export function parseFlagValue(
  name: string,
  definition: Flag,
  { text, nowMs }: { text: string; nowMs: number },
): unknown {
  const [read, expected] = KINDS[definition.kind === 'texts' || definition.kind === 'switch' ? 'text' : definition.kind]
  const value = read(text, nowMs)
  const isChoice = definition.choices === undefined || definition.choices.includes(text)
  if (value !== undefined && isChoice) return value
  const wanted = definition.choices === undefined ? expected : `one of ${definition.choices.join(', ')}`
  throw usageError(`--${name} got ${quoted(text)}; expected ${wanted}.`)
}

function plus(nowMs: number, ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(nowMs + ms)
}

const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

const PART = /(\d+(?:\.\d+)?)\s?(ms|s|m|h|d|w)/g
const WHOLE = /^(?:\d+(?:\.\d+)?\s?(?:ms|s|m|h|d|w))+$/

/** Milliseconds of a duration such as `90s` or `1h30m`; undefined for anything else. Unlike rules, `0s` is valid. */
export function parseDuration(text: string): number | undefined {
  if (text.length > 40 || !WHOLE.test(text)) return undefined
  let ms = 0
  for (const [, number, unit] of text.matchAll(PART)) ms += Number(number) * UNITS[unit!]!
  return Math.round(ms)
}

/**
 * Checks a positional argument that is sent to the service as it is. Throws `SLUICE_CLI_USAGE` if it is no duration.
 */
export function checkDuration(text: string): void {
  if (parseDuration(text) !== undefined) return
  throw usageError(`${quoted(text)} is not a duration; expected one such as 15m or 1h30m.`)
}

const INSTANT = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2}))?$/

/** Milliseconds since 1970 of a date such as `2027-01-01` (UTC) or `2027-01-01T12:00:00Z`; else undefined. */
export function parseInstant(text: string): number | undefined {
  const ms = INSTANT.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}
