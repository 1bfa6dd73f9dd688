import { usageError } from '../output/cli-error.ts'
import { quoted } from '../output/text.ts'

/** What may stand after a flag, and what it becomes. */
interface FlagValues {
  readonly text: string
  /** Any number of times. */
  readonly texts: readonly string[]
  /** A whole number from 0 on. */
  readonly whole: number
  readonly number: number
  /** Milliseconds. */
  readonly duration: number
  /** Milliseconds since 1970: a date, or a duration from now. */
  readonly instant: number
  /** Nothing: it is there or not. */
  readonly switch: boolean
}

/** A kind of flag. */
type FlagKind = keyof FlagValues

/** A flag of a command. */
export interface Flag<K extends FlagKind = FlagKind, C extends string = string> {
  readonly kind: K
  /** What stands for its value in the help, such as `<name>`; empty for a switch. */
  readonly argument: string
  /** What it does, and what holds when it is left out. */
  readonly help: string
  /** The only values, where these are few. */
  readonly choices?: readonly C[]
}

/** Flags by their names, without the two dashes. */
export type Flags = Readonly<Record<string, Flag>>

type FlagValue<F extends Flag> =
  F extends Flag<infer K, infer C>
    ? K extends 'switch'
      ? boolean
      : K extends 'texts'
        ? readonly string[]
        : (K extends 'text' ? C : FlagValues[K]) | undefined
    : never

/** What was given: undefined, false or an empty list for what was left out. */
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

/** How often an argument is there. */
type PositionalCount = 'needed' | 'optional' | 'several'

/** An argument of a command that is known by its place. */
interface Positional<C extends PositionalCount = PositionalCount> {
  readonly count: C
  readonly help: string
}

/** Arguments by their names, in the order of their places; only the last may be left out or there several times. */
export type Positionals = Readonly<Record<string, Positional>>

type PositionalValue<C extends PositionalCount> = C extends 'needed'
  ? string
  : C extends 'optional'
    ? string | undefined
    : readonly string[]

/** What was given. */
export type GivenPositionals<P extends Positionals> = { readonly [Name in keyof P]: PositionalValue<P[Name]['count']> }

/** An argument that must be there. */
export function needed(help: string): Positional<'needed'> {
  return { count: 'needed', help }
}

/** An argument that may be left out. */
export function optional(help: string): Positional<'optional'> {
  return { count: 'optional', help }
}

/** One or more. */
export function several(help: string): Positional<'several'> {
  return { count: 'several', help }
}

/** `<file>`, `[<version>]` or `<file>...`, as the help shows it. */
export function placeholder(name: string, { count }: Positional): string {
  if (count === 'needed') return `<${name}>`
  return count === 'optional' ? `[<${name}>]` : `<${name}>...`
}

type Reader<K extends FlagKind> = (text: string, nowMs: number) => FlagValues[K] | undefined

/** How each kind is read, and what it must be. */
const KINDS: { readonly [K in Exclude<FlagKind, 'switch' | 'texts'>]: readonly [Reader<K>, expected: string] } = {
  text: [(text) => (text === '' ? undefined : text), 'a text that is not empty'],
  whole: [(text) => (/^\d{1,15}$/.test(text) ? Number(text) : undefined), 'a whole number, 0 or more'],
  number: [(text) => (/^-?\d{1,15}(?:\.\d{1,9})?$/.test(text) ? Number(text) : undefined), 'a number'],
  duration: [parseDuration, 'a duration such as 30s, 5m or 1h30m'],
  instant: [
    (text, nowMs) => parseInstant(text) ?? plus(nowMs, parseDuration(text)),
    'a date such as 2027-01-01 or 2027-01-01T12:00:00Z, or a duration from now such as 30d',
  ],
}

/** The value of a flag, read; throws when it cannot be. */
export function readFlagValue(
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

/** The milliseconds of a duration such as `90s` or `1h30m`; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  if (text.length > 40 || !WHOLE.test(text)) return undefined
  let ms = 0
  for (const [, number, unit] of text.matchAll(PART)) ms += Number(number) * UNITS[unit!]!
  return Math.round(ms)
}

const INSTANT = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2}))?$/

/** The instant of a date such as `2027-01-01` (in UTC) or `2027-01-01T12:00:00Z`, in milliseconds since 1970; else undefined. */
export function parseInstant(text: string): number | undefined {
  const ms = INSTANT.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(ms) ? undefined : ms
}
