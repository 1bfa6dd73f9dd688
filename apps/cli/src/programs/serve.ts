import type { Command } from '../command-line/command.ts'
import { passingCommand } from '../command-line/command.ts'
import type { ExitCode } from '../output/cli-error.ts'
import { CliError } from '../output/cli-error.ts'
import { tellErrors } from './child-program.ts'

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

/** What the service says that programs want to know. `firstKey` is the first API key, when it was just made. */
export type ServiceEvent =
  | { readonly event: 'started'; readonly url: string; readonly firstKey: string | null }
  /** The key was made after the start, because the database was unreachable until then; or the start was interrupted. */
  | { readonly event: 'firstKey'; readonly firstKey: string }

const RUNNING = /^ +health +(https?:\S+)\/livez\b/m
const FIRST_KEY = /^ +(slk_\w+)\s*\n/m
const COMPLETE = /^Try it:$/m

/** Reads what the service prints to its end; gives what it says when it is up, once, and the first key, whenever it comes. */
export async function* readStartup(output: AsyncIterable<string>): AsyncGenerator<ServiceEvent, void, void> {
  let text = ''
  let isUp = false
  let firstKey: string | undefined
  for await (const piece of output) {
    text += piece
    firstKey ??= FIRST_KEY.exec(text)?.[1]
    const url = isUp ? undefined : RUNNING.exec(text)?.[1]
    if (url !== undefined && COMPLETE.test(text)) {
      isUp = true
      yield { event: 'started', url, firstKey: firstKey ?? null }
    } else if (isUp && firstKey !== undefined) {
      yield { event: 'firstKey', firstKey }
    } else continue
    // Nobody waits for more than a key any more, and that there is once.
    text = ''
    firstKey = undefined
  }
  if (firstKey !== undefined) yield { event: 'firstKey', firstKey }
}
