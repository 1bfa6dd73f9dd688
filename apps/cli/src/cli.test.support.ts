import type { CliParts } from './cli.ts'
import { runCli } from './cli.ts'
import { COMMANDS } from './command-table.ts'
import { readEnvironment, systemNowMs, systemWait } from './environment.ts'
import { invalidFile } from './files/read-document.ts'
import type { Terminal } from './output/terminal.ts'
import { streamTerminal } from './output/terminal.ts'

// Runs command lines in this process, with everything that they print in the hands of the test.

/** What a command line did. */
export interface RunOutcome {
  readonly code: number
  /** What went to standard output. */
  readonly out: string
  /** What went to standard error. */
  readonly err: string
  /** Standard output, parsed as JSON. */
  json<T>(): T
  /** Standard error, parsed as JSON. */
  errorJson<T>(): T
}

/** What a test may say about how command lines are run. */
export interface RunOptions extends Partial<Omit<CliParts, 'terminal' | 'environment' | 'readText'>> {
  readonly env?: Readonly<Record<string, string>>
  readonly files?: Readonly<Record<string, string>>
  /** Whether a person looks at it. */
  readonly isTty?: boolean
  readonly columns?: number
  readonly rows?: number
}

/** Runs command lines the way the options say. */
export function cliRunner(options: RunOptions = {}): (...args: string[]) => Promise<RunOutcome> {
  return (...args) => run(args, options)
}

async function run(args: readonly string[], options: RunOptions): Promise<RunOutcome> {
  const written = { out: '', err: '' }
  const { env = {}, files = {}, ...parts } = options
  const code = await runCli(args, {
    commands: COMMANDS,
    environment: readEnvironment(env),
    terminal: fakeTerminal(written, options),
    nowMs: systemNowMs,
    wait: systemWait,
    every: () => () => undefined,
    nodeVersion: '24.0.0',
    readText: (path) => (Object.hasOwn(files, path) ? Promise.resolve(files[path]!) : Promise.reject(noFile(path))),
    programs: { start: () => undefined },
    signal: new AbortController().signal,
    version: '1.2.3',
    ...parts,
  })
  return {
    code,
    ...written,
    json: <T>() => JSON.parse(written.out) as T,
    errorJson: <T>() => JSON.parse(written.err) as T,
  }
}

function fakeTerminal(
  written: { out: string; err: string },
  { isTty = false, columns, rows, env }: RunOptions,
): Terminal {
  const stream = (name: 'out' | 'err') => ({
    write: (text: string) => {
      written[name] += text
    },
    isTTY: isTty,
    columns,
    rows,
  })
  return streamTerminal(stream('out'), stream('err'), env)
}

function noFile(path: string): Error {
  return invalidFile(path, 'it cannot be read (there is no such file).')
}
