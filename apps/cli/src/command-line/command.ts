import type { Client } from '@sluice/client'
import type { Wait } from '../doctor/server-probe.ts'
import type { ExitCode } from '../output/cli-error.ts'
import type { Progress } from '../output/progress.ts'
import type { Paint, Terminal } from '../output/terminal.ts'
import type { CliEnvironment } from '../settings.ts'
import type { Flags, GivenFlags, GivenPositionals, Positionals } from './arguments.ts'

/** What commands work with. */
export interface CommandContext {
  /** Asks the service that `--url` names, with the key of `--key`. Throws when one of these cannot be used. */
  readonly client: Client
  /** Where that is. */
  readonly url: string
  /** Whether `--url` or the environment says where it is. */
  readonly isUrlGiven: boolean
  /** The same for a service elsewhere. */
  readonly at: (url: string) => Pick<CommandContext, 'client' | 'url'>
  /** Whether there is a key. */
  readonly hasKey: boolean
  /** Whether the result is to be printed as JSON: for commands that print it piece by piece. */
  readonly isJson: boolean
  readonly environment: CliEnvironment
  readonly terminal: Terminal
  readonly progress: Progress
  readonly nowMs: () => number
  readonly wait: Wait
  /** Of the Node that runs this. */
  readonly nodeVersion: string
  /** Aborts when the user interrupts; a command that is not live need not look at it. */
  readonly signal: AbortSignal
  /** The text of a file; of standard input for `-`. */
  readonly readText: (path: string) => Promise<string>
  /** Starts the other programs of this project. */
  readonly programs: ProgramHost
}

/** What a command has to say. */
export interface CommandResult {
  /** For `--json`: its fields are part of the public interface. Undefined where the command printed everything itself. */
  readonly value: unknown
  /** The same for people. */
  readonly text: string
  /** Adds colour to the text. */
  readonly decorate?: (text: string, paint: Paint) => string
  /** Default: 0. */
  readonly exitCode?: ExitCode
}

/** What stands on the command line, read. */
export interface Invocation<F extends Flags, P extends Positionals> {
  readonly flags: GivenFlags<F>
  readonly args: GivenPositionals<P>
  /** For a command that passes everything on: that. Else empty. */
  readonly rest: readonly string[]
}

/** What is said about a command. */
interface CommandParts<F extends Flags, P extends Positionals> {
  /** As it is typed: `rules put`. */
  readonly name: string
  /** A few words. */
  readonly summary: string
  /** What it does, in sentences. */
  readonly description: string
  readonly args: P
  readonly flags: F
  /** Command lines that work, without `sluice`. */
  readonly examples: readonly [string, ...string[]]
  /** Whether it asks the service, and so takes `--url`, `--key` and `--timeout`. */
  readonly asksService: boolean
  /** Whether it writes to the terminal itself while it runs, and says itself when progress is to be shown. */
  readonly isLive?: boolean
  readonly run: (invocation: Invocation<F, P>, context: CommandContext) => Promise<CommandResult>
}

/** A command, whatever its flags. */
export interface Command extends Omit<CommandParts<Flags, Positionals>, 'run' | 'isLive'> {
  readonly isLive: boolean
  /** Whether everything after its name is passed on to another program as it is. */
  readonly passesOn: boolean
  readonly run: (invocation: Invocation<Flags, Positionals>, context: CommandContext) => Promise<CommandResult>
}

/** A command; the compiler holds its `run` against its flags and arguments. */
export function command<F extends Flags, P extends Positionals>(parts: CommandParts<F, P>): Command {
  const run = parts.run as Command['run']
  return { ...parts, isLive: parts.isLive ?? false, passesOn: false, run }
}

/** A command that passes everything after its name on to another program. */
export function passingCommand(
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

/** A program that was started. */
export interface RunningProgram {
  /** Number of its process. */
  readonly pid: number
  /** What it prints, piece by piece; ends with the program. Empty when its output goes to ours. */
  readonly output: AsyncIterable<string>
  /** The same for what it says on standard error. */
  readonly errors: AsyncIterable<string>
  /** Resolves with its exit code, or with 128 and the number of the signal that ended it. */
  readonly ended: Promise<number>
}

/** How a program is started. */
export interface ProgramOptions {
  readonly args: readonly string[]
  /** Whether its output, and what it says on standard error, are read instead of going to ours. Both must be read then. */
  readonly isRead: boolean
}

/** Finds and starts the other programs of this project. */
export interface ProgramHost {
  /** Starts the program of a package; undefined when that is not installed. Signals are passed on to it. */
  start(packageName: string, options: ProgramOptions): RunningProgram | undefined
}

/** All items of a list, with progress by their number. */
export async function collected<T>(items: AsyncIterable<T>, { progress, url }: CommandContext): Promise<readonly T[]> {
  const all: T[] = []
  for await (const item of items) {
    all.push(item)
    if (all.length % 1000 === 0) progress.say(`asking ${url}: ${all.length} so far`)
  }
  return all
}
