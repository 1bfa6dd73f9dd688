import type { Command } from '../command-line/command.ts'
import { passingCommand } from '../command-line/command.ts'
import type { ExitCode } from '../output/cli-error.ts'
import { CliError } from '../output/cli-error.ts'
import { tellErrors } from './child-program.ts'

/** Runs the harness. */
export const harnessCommand: Command = passingCommand({
  name: 'harness',
  summary: 'Test that limits are exact',
  description:
    'Counts what every algorithm approves under concurrent requests, and compares it with its limit. --target tests a running service, or a module that exports a limiter. Flags are those of the harness: "sluice harness -- --help" lists them. Exits with its code.',
  examples: ['harness --threads 4 --max 100', 'harness --store redis --json', 'harness --target http://127.0.0.1:8080'],
  run: async (args, { programs, terminal, isJson }) => {
    const program = programs.start('@sluice/harness', { args, isRead: isJson })
    if (program === undefined) {
      throw new CliError('SLUICE_CLI_PROGRAM_MISSING', {
        detail:
          'The package @sluice/harness is not here: it is part of the repository, where "npm run harness" runs it.',
      })
    }
    const ended = isJson ? tellErrors(program, terminal) : program.ended
    for await (const piece of program.output) terminal.draw(piece)
    return { value: undefined, text: '', exitCode: (await ended) as ExitCode }
  },
})
