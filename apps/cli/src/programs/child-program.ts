import type { ChildProcess, StdioOptions } from 'node:child_process'
import { spawn } from 'node:child_process'
import { on } from 'node:events'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { constants } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ProgramHost, ProgramOptions, RunningProgram } from '../command-line/command.ts'
import type { ExitCode } from '../output/cli-error.ts'
import { failureJson } from '../output/cli-error.ts'
import type { Terminal } from '../output/terminal.ts'

const FORWARDED_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Starts programs as child processes with the same Node. `from`: URL of the module to resolve packages from. */
export function nodePrograms(from: string): ProgramHost {
  return {
    start(packageName, options) {
      const entry = entryOf(packageName, from)
      return entry === undefined ? undefined : startProgram(entry, options)
    },
  }
}

/**
 * The file to run. In the published package it is beside this one, as `service.js` for `@sluice/service`. In the
 * repository it is the source if this runs from source, else the build.
 */
function entryOf(packageName: string, from: string): string | undefined {
  const bundled = fileURLToPath(new URL(`${packageName.slice('@sluice/'.length)}.js`, from))
  const file = from.endsWith('.ts') ? 'src/main.ts' : 'dist/main.js'
  const places = createRequire(from).resolve.paths(packageName) ?? []
  return [bundled, ...places.map((place) => join(place, packageName, file))].find((entry) => existsSync(entry))
}

const STDIO: Readonly<Record<ProgramOptions['capture'], StdioOptions>> = {
  nothing: 'inherit',
  output: ['inherit', 'pipe', 'pipe'],
  events: ['inherit', 'ignore', 'pipe', 'ipc'],
}

function startProgram(entry: string, { args, capture }: ProgramOptions): RunningProgram {
  const flags = ['--disable-warning=ExperimentalWarning', ...(entry.endsWith('.ts') ? ['--conditions=source'] : [])]
  const child = spawn(process.execPath, [...flags, entry, ...args], { stdio: STDIO[capture] })
  const stopForwarding = forwardSignals(child)
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve(signal === null ? (code ?? 1) : 128 + constants.signals[signal]))
  }).finally(stopForwarding)
  const [output, errors] = [child.stdout, child.stderr].map((stream) => stream?.setEncoding('utf8') ?? nothing())
  const events = capture === 'events' ? messagesOf(child) : nothing()
  return { pid: child.pid ?? 0, output: output!, events, errors: errors!, ended }
}

async function* nothing(): AsyncGenerator<never> {
  // Not captured.
}

/** IPC messages of a child until its channel closes. Listens at once, so that none is missed. */
export function messagesOf(child: ChildProcess): AsyncIterable<unknown> {
  const messages = on(child, 'message', { close: ['disconnect'] })
  return (async function* () {
    for await (const [message] of messages) yield message
  })()
}

/** Forwards signals. A terminal sends Ctrl-C to both processes: forwarding it too would force the program to stop. */
function forwardSignals(child: ChildProcess): () => void {
  const inTerminal = [process.stdin, process.stdout, process.stderr].some((stream) => stream.isTTY)
  const stops = FORWARDED_SIGNALS.map((signal) => {
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

/** How much plain text of standard error is kept: its end, where the reason is. */
const LONGEST_TEXT = 16_384

const CODE_AND_DETAIL = /^(SLUICE_[A-Z_]+): (.+)$/s

/**
 * Forwards standard error of a captured program as JSON until it ends, and returns its exit code. Log lines, which are
 * JSON, are forwarded as they come. Plain text becomes the detail of the failure.
 */
export async function forwardErrors(program: RunningProgram, terminal: Terminal): Promise<number> {
  let text = ''
  for await (const line of linesOf(program.errors)) {
    if (line.startsWith('{')) terminal.printError(line)
    else text = `${text}${line}\n`.slice(-LONGEST_TEXT)
  }
  const code = await program.ended
  const message = text.trim()
  if (message === '') return code
  terminal.printError(code === 0 ? message : programFailure(message, code))
  return code
}

function programFailure(message: string, code: number): string {
  const [, name = 'SLUICE_CLI_PROGRAM_FAILED', detail = message] = CODE_AND_DETAIL.exec(message) ?? []
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
