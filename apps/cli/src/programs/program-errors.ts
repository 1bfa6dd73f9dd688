import type { ExitCode } from '../exit-code.ts'
import { failureJson } from '../output/failure.ts'
import type { Terminal } from '../output/terminal.ts'
import type { RunningProgram } from './program-host.ts'

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
