import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import type { ProgramHost, ProgramOptions, RunningProgram } from './program-host.ts'

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

/** The file to run: the source where this runs from source, else what was built of it. */
function entryOf(packageName: string, from: string): string | undefined {
  const isSource = from.endsWith('.ts')
  try {
    const folder = dirname(createRequire(from).resolve(`${packageName}/package.json`))
    const entry = join(folder, isSource ? 'src/main.ts' : 'dist/main.js')
    return existsSync(entry) ? entry : undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND') return undefined
    throw error
  }
}

function startProgram(entry: string, { args, isRead }: ProgramOptions): RunningProgram {
  const flags = ['--disable-warning=ExperimentalWarning', ...(entry.endsWith('.ts') ? ['--conditions=source'] : [])]
  const child = spawn(process.execPath, [...flags, entry, ...args], {
    stdio: ['inherit', isRead ? 'pipe' : 'inherit', 'inherit'],
  })
  const stopPassing = passSignals(child)
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve(signal === null ? (code ?? 1) : 128 + constants.signals[signal]))
  }).finally(stopPassing)
  return { pid: child.pid ?? 0, output: child.stdout?.setEncoding('utf8') ?? nothing(), ended }
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
