import type { Client } from '@sluice/client'
import { parseDurationMs } from '@sluice/core/options'
import type { ExitCode } from '../output/cli-error.ts'
import { usageError } from '../output/cli-error.ts'
import type { Paint, Progress, Terminal } from '../output/terminal.ts'
import { quoted } from '../output/text.ts'

/** Environment variables that the command line reads; undefined if unset or empty. */
export interface CliEnvironment {
  /** `SLUICE_URL` */
  readonly url: string | undefined
  /** `SLUICE_API_KEY`; never printed. */
  readonly apiKey: string | undefined
  /** The whole environment, for settings of the service. May contain passwords. */
  readonly variables: Readonly<Record<string, string | undefined>>
}

/** Waits `ms` milliseconds. Rejects if the signal aborts. */
export type Wait = (ms: number, signal: AbortSignal) => Promise<void>

/** What a command can use while it runs. */
export interface CommandContext {
  /** Client for the service at `--url` with the key of `--key`. The getter throws if one of them is invalid. */
  readonly client: Client
  /** Address of that service, without secrets. */
  readonly url: string
  /** Whether `--url` or `SLUICE_URL` is set. */
  readonly isUrlGiven: boolean
  /** `client` and `url` for another address. */
  readonly at: (url: string) => Pick<CommandContext, 'client' | 'url'>
  /** Whether an API key is set. */
  readonly hasKey: boolean
  /** Whether `--json` is set, for commands that print while they run. */
  readonly isJson: boolean
  readonly environment: CliEnvironment
  readonly terminal: Terminal
  readonly progress: Progress
  readonly nowMs: () => number
  readonly wait: Wait
  /** Version of the running Node. */
  readonly nodeVersion: string
  /** Aborts when the user interrupts. Only live commands need to handle it. */
  readonly signal: AbortSignal
  /** Content of a file, or of standard input for `-`. */
  readonly readText: (path: string) => Promise<string>
  readonly programs: ProgramHost
}

/** Finds and starts the other programs of this project. */
export interface ProgramHost {
  /** Starts the program of a package and forwards signals to it. Undefined if the package is not installed. */
  start(packageName: string, options: ProgramOptions): RunningProgram | undefined
}

/** How to start a program. */
export interface ProgramOptions {
  readonly args: readonly string[]
  /**
   * `nothing`: the program uses our terminal. `output`: standard output and standard error. `events`: IPC messages and
   * standard error; standard output is dropped. The caller must read what is captured.
   */
  readonly capture: 'nothing' | 'output' | 'events'
}

/** A child process. */
export interface RunningProgram {
  readonly pid: number
  /** Chunks of standard output until the program ends. Empty if not captured. */
  readonly output: AsyncIterable<string>
  /** IPC messages until the program ends. Empty if not captured. */
  readonly events: AsyncIterable<unknown>
  /** Chunks of standard error until the program ends. Empty if not captured. */
  readonly errors: AsyncIterable<string>
  /** Resolves with the exit code, or with 128 plus the number of the signal that ended the program. */
  readonly ended: Promise<number>
}

/** Result of a command. */
export interface CommandResult {
  /** For `--json`. Its fields are public interface. Undefined if the command printed everything itself. */
  readonly value: unknown
  /** Human-readable result. */
  readonly text: string
  /** Adds colour to the text. */
  readonly decorate?: (text: string, paint: Paint) => string
  /** Default: 0. */
  readonly exitCode?: ExitCode
}

/** Parsed flags and arguments of one call. */
export interface Invocation<F extends Flags, P extends Positionals> {
  readonly flags: GivenFlags<F>
  readonly args: GivenPositionals<P>
  /** Unparsed arguments of a pass-through command; else empty. */
  readonly rest: readonly string[]
}

/** Definition of a command. */
export interface CommandParts<F extends Flags, P extends Positionals> {
  /** As typed: `rules put`. */
  readonly name: string
  /** Imperative verb and noun, at most six words. */
  readonly summary: string
  /** Sentences for the help and the reference. */
  readonly description: string
  readonly args: P
  readonly flags: F
  /** Complete command lines, without `sluice`. */
  readonly examples: readonly [string, ...string[]]
  /** Whether it calls the service, and so accepts `--url`, `--key` and `--timeout`. */
  readonly asksService: boolean
  /** Whether it prints while it runs and shows progress itself. Default: false. */
  readonly isLive?: boolean
  readonly run: (invocation: Invocation<F, P>, context: CommandContext) => Promise<CommandResult>
}

/** A command of any flags and arguments. */
export interface Command extends Omit<CommandParts<Flags, Positionals>, 'run' | 'isLive'> {
  readonly isLive: boolean
  /** Whether everything after its name goes to another program, unparsed. */
  readonly passesOn: boolean
  readonly run: (invocation: Invocation<Flags, Positionals>, context: CommandContext) => Promise<CommandResult>
}

/** Defines a command. The compiler checks `run` against the declared flags and arguments. */
export function command<F extends Flags, P extends Positionals>(parts: CommandParts<F, P>): Command {
  const run = parts.run as Command['run']
  return { ...parts, isLive: parts.isLive ?? false, passesOn: false, run }
}

/** Defines a command that passes everything after its name to another program. */
export function passThroughCommand(
  parts: Omit<CommandParts<Record<never, never>, Record<never, never>>, 'args' | 'flags' | 'asksService' | 'run'> & {
    readonly run: (rest: readonly string[], context: CommandContext) => Promise<CommandResult>
  },
): Command {
  return {
    ...parts,
    args: {},
    flags: {},
    asksService: false,
    isLive: true,
    passesOn: true,
    run: ({ rest }, context) => parts.run(rest, context),
  }
}

/** Largest page that the service returns. */
export const LARGEST_PAGE = 1000

/** Reads all items of a list. Shows their number as progress. */
export async function allItems<T>(items: AsyncIterable<T>, { progress, url }: CommandContext): Promise<readonly T[]> {
  const all: T[] = []
  for await (const item of items) {
    all.push(item)
    if (all.length % LARGEST_PAGE === 0) progress.say(`asking ${url}: ${all.length} so far`)
  }
  return all
}

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

/** Milliseconds of a duration such as `90s` or `1h30m`; undefined for anything else. Unlike in rules, `0s` is valid. */
export function parseDuration(text: string): number | undefined {
  const ms = parseDurationMs(text)
  return Number.isNaN(ms) ? undefined : Math.round(ms)
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
