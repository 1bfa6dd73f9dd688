import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { constants } from 'node:os'
import { join } from 'node:path'
import type { ProgramHost, ProgramOptions, RunningProgram } from '../command-line/command.ts'
import type { ExitCode } from '../output/cli-error.ts'
import { failureJson } from '../output/cli-error.ts'
import type { Terminal } from '../output/terminal.ts'

const PASSED_ON = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Starts programs as processes of the Node that runs this one. `from` says where they are looked for: the URL of a module. */
export function nodePrograms(from: string): ProgramHost {
  return {
    start(packageName, options) {
      const entry = entryOf(packageName, from)
      return entry === undefined ? undefined : startProgram(entry, options)
    },
  }
}

/** The file to run: the source where this runs from source, else what was built of it. A program is no entry of its package. */
function entryOf(packageName: string, from: string): string | undefined {
  const file = from.endsWith('.ts') ? 'src/main.ts' : 'dist/main.js'
  const places = createRequire(from).resolve.paths(packageName) ?? []
  return places.map((place) => join(place, packageName, file)).find((entry) => existsSync(entry))
}

function startProgram(entry: string, { args, isRead }: ProgramOptions): RunningProgram {
  const flags = ['--disable-warning=ExperimentalWarning', ...(entry.endsWith('.ts') ? ['--conditions=source'] : [])]
  const child = spawn(process.execPath, [...flags, entry, ...args], {
    stdio: isRead ? ['inherit', 'pipe', 'pipe'] : 'inherit',
  })
  const stopPassing = passSignals(child)
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve(signal === null ? (code ?? 1) : 128 + constants.signals[signal]))
  }).finally(stopPassing)
  const [output, errors] = [child.stdout, child.stderr].map((stream) => stream?.setEncoding('utf8') ?? nothing())
  return { pid: child.pid ?? 0, output: output!, errors: errors!, ended }
}

async function* nothing(): AsyncGenerator<string> {
  // Its output goes to ours.
}

/** A program ends in its own order; we end after it. A terminal sends Ctrl-C to both, and a second one would cut that short. */
function passSignals(child: ChildProcess): () => void {
  const inTerminal = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY)
  const stops = PASSED_ON.map((signal) => {
    const pass = (): void => {
      if (signal !== 'SIGINT' || !inTerminal) child.kill(signal)
    }
    process.on(signal, pass)
    return () => process.removeListener(signal, pass)
  })
  return () => {
    for (const stop of stops) stop()
  }
}

/** So much is kept of what a program says in words: the end of it, where it says why it ends. */
const LONGEST_TEXT = 16_384

const CODE_AND_DETAIL = /^(SLUICE_[A-Z_]+): (.+)$/s

/**
 * Tells for programs what a program that is read says on standard error, until it has ended; gives its exit code. Lines of its
 * log, which are JSON, are handed on as they come. What it says in words is what it failed with, when it has failed.
 */
export async function tellErrors(program: RunningProgram, terminal: Terminal): Promise<number> {
  let text = ''
  for await (const line of linesOf(program.errors)) {
    if (line.startsWith('{')) terminal.printError(line)
    else text = `${text}${line}\n`.slice(-LONGEST_TEXT)
  }
  const code = await program.ended
  const said = text.trim()
  if (said === '') return code
  terminal.printError(code === 0 ? said : failureOfProgram(said, code))
  return code
}

function failureOfProgram(said: string, code: number): string {
  const [, name = 'SLUICE_CLI_PROGRAM_FAILED', detail = said] = CODE_AND_DETAIL.exec(said) ?? []
  return failureJson({ code: name, detail, status: undefined, errors: [], exitCode: code as ExitCode })
}

async function* linesOf(pieces: AsyncIterable<string>): AsyncGenerator<string, void, void> {
  let rest = ''
  for await (const piece of pieces) {
    const lines = (rest + piece).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest !== '') yield rest
}
