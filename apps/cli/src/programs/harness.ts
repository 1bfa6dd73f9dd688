import type { Command } from '../command-line/command.ts'
import { passThroughCommand } from '../command-line/command.ts'
import type { ExitCode } from '../output/cli-error.ts'
import { CliError } from '../output/cli-error.ts'
import { forwardErrors } from './child-program.ts'

export const harnessCommand: Command = passThroughCommand({
  name: 'harness',
  summary: 'Test that limits are exact',
  description:
    'Counts what every algorithm allows under concurrent requests and compares it with the limit. --target tests a ' +
    'running service, or a module that exports a limiter. "sluice harness --help" lists the flags. Exits with its ' +
    'code.',
  examples: ['harness --threads 4 --max 100', 'harness --store redis --json', 'harness --target http://127.0.0.1:8080'],
  run: async (args, { programs, terminal, isJson }) => {
    const program = programs.start('@sluice/harness', { args, capture: isJson ? 'output' : 'nothing' })
    if (program === undefined) {
      throw new CliError('SLUICE_CLI_PROGRAM_MISSING', {
        detail: 'The package @sluice/harness is not installed. Install the package again: "npm install sluice".',
      })
    }
    const ended = isJson ? forwardErrors(program, terminal) : program.ended
    for await (const piece of program.output) terminal.draw(piece)
    return { value: undefined, text: '', exitCode: (await ended) as ExitCode }
  },
})
