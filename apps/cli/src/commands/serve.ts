import { CliError } from '../cli-error.ts'
import type { Command } from '../command.ts'
import { passingCommand } from '../command.ts'
import type { ExitCode } from '../exit-code.ts'
import { tellErrors } from '../programs/program-errors.ts'
import { readStartup } from '../programs/startup-reader.ts'

/** Starts the service. */
export const serveCommand: Command = passingCommand({
  name: 'serve',
  summary: 'Start the service',
  description:
    'Runs the service in the foreground until it is stopped. Flags are those of the service: "sluice serve -- --help" lists them. With --json it prints one line when it is up, with event "started", url, pid and firstKey (null unless the key was just made); one with event "firstKey" and firstKey when the key is made later, because the database was unreachable at the start; and one when it has ended, with event "stopped" and code.',
  examples: ['serve --port 8080', 'serve --redis-url redis://127.0.0.1:6379 --threads auto'],
  run: async (args, { programs, terminal, isJson }) => {
    const passed = args.filter((arg) => arg !== '--json')
    const program = programs.start('@sluice/service', { args: passed, isRead: isJson })
    if (program === undefined) {
      throw new CliError('SLUICE_CLI_PROGRAM_MISSING', {
        detail:
          'The package @sluice/service is not here: run "npm start" in the repository, or install the service beside this command.',
      })
    }
    if (!isJson) return { value: undefined, text: '', exitCode: (await program.ended) as ExitCode }
    const ended = tellErrors(program, terminal)
    for await (const event of readStartup(program.output)) {
      terminal.print(JSON.stringify(event.event === 'started' ? { ...event, pid: program.pid } : event))
    }
    const code = await ended
    terminal.print(JSON.stringify({ event: 'stopped', code }))
    return { value: undefined, text: '', exitCode: code as ExitCode }
  },
})
