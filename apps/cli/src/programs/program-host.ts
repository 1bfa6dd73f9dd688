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
