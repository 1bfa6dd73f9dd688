import type { Client } from '@sluice/client'
import type { ExitCode } from '../output/cli-error.ts'
import type { Progress } from '../output/progress.ts'
import type { Paint, Terminal } from '../output/terminal.ts'
import type { Flags, GivenFlags, GivenPositionals, Positionals } from './arguments.ts'

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
