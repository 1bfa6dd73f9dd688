import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pollUntil } from './poll-until.ts'
import { ServerError } from './server-error.ts'

const LINES_SHOWN = 40

/** A program to run. */
export interface Program {
  readonly command: string
  readonly args: readonly string[]
  /** Its working folder, which also contains its log. */
  readonly folder: string
}

/** One run of a program, from its start to its end. */
export class ServerProcess {
  /** Resolves when it has ended, for any reason. */
  readonly ended: Promise<void>
  readonly #child: ChildProcess
  readonly #logFile: string
  #isRunning = true

  private constructor(child: ChildProcess, logFile: string) {
    this.#child = child
    this.#logFile = logFile
    this.ended = new Promise((resolve) => {
      child.once('exit', () => {
        this.#isRunning = false
        resolve()
      })
    })
  }

  /** @throws ServerError `SLUICE_TESTING_PROGRAM_MISSING` if the program is not on the PATH */
  static async start({ command, args, folder }: Program): Promise<ServerProcess> {
    const logFile = join(folder, 'output.log')
    // A file, not a pipe: nothing is lost when the program ends, and its children cannot keep it open.
    const log = openSync(logFile, 'w')
    try {
      const child = spawn(command, args, { cwd: folder, stdio: ['ignore', log, log] })
      const run = new ServerProcess(child, logFile)
      await new Promise<void>((resolve, reject) => {
        child.once('spawn', resolve)
        child.once('error', (error: NodeJS.ErrnoException) => reject(missingProgram(command, error)))
      })
      return run
    } finally {
      closeSync(log)
    }
  }

  get pid(): number {
    return this.#child.pid!
  }

  get isRunning(): boolean {
    return this.#isRunning
  }

  /** The last lines of its output, at most 40; empty once its folder is gone. */
  get log(): string {
    try {
      return readFileSync(this.#logFile, 'utf8').trimEnd().split('\n').slice(-LINES_SHOWN).join('\n')
    } catch {
      return ''
    }
  }

  /** Sends a signal; no effect if it has ended. */
  signal(name: NodeJS.Signals): void {
    this.#child.kill(name)
  }

  /** Stops it. Resolves when it has stopped, so that nothing sent afterwards is answered. */
  async freeze(): Promise<void> {
    this.signal('SIGSTOP')
    await pollUntil(async () => ((await this.#mayBeActive()) ? undefined : true), {
      what: `process ${this.pid} to stand still`,
    })
  }

  async #mayBeActive(): Promise<boolean> {
    try {
      return !/^State:\s+[TZX]/m.test(await readFile(`/proc/${this.pid}/status`, 'utf8'))
    } catch {
      // It has just ended, or this system does not tell.
      return false
    }
  }
}

/** The error for a program that could not be started. */
export function missingProgram(command: string, error: NodeJS.ErrnoException): ServerError {
  return new ServerError(
    'SLUICE_TESTING_PROGRAM_MISSING',
    `${command} could not be started (${error.code}); expected it on the PATH. Install it: apt-get install ${command}`,
    error,
  )
}
