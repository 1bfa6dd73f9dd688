import type { Command } from '../command-line/command.ts'
import { passThroughCommand } from '../command-line/command.ts'
import type { ExitCode } from '../output/cli-error.ts'
import { CliError } from '../output/cli-error.ts'
import { forwardErrors } from './child-program.ts'

export const serveCommand: Command = passThroughCommand({
  name: 'serve',
  summary: 'Start the service',
  description:
    'Runs the service in the foreground until it is stopped. Flags are those of the service: "sluice serve -- --help" lists them. With --json it prints one line per event. "started" has url, pid and firstKey (null unless the key was just created). "firstKey" has firstKey, if the key is created later because the database was unreachable. "stopped" has code.',
  examples: ['serve --port 8080', 'serve --redis-url redis://127.0.0.1:6379 --threads auto'],
  run: async (args, { programs, terminal, isJson }) => {
    const passed = args.filter((arg) => arg !== '--json')
    const program = programs.start('@sluice/service', { args: passed, isRead: isJson })
    if (program === undefined) {
      throw new CliError('SLUICE_CLI_PROGRAM_MISSING', {
        detail:
          'The package @sluice/service is not installed: run "npm start" in the repository, or install the service.',
      })
    }
    if (!isJson) return { value: undefined, text: '', exitCode: (await program.ended) as ExitCode }
    const ended = forwardErrors(program, terminal)
    for await (const event of readStartup(program.output)) {
      terminal.print(JSON.stringify(event.event === 'started' ? { ...event, pid: program.pid } : event))
    }
    const code = await ended
    terminal.print(JSON.stringify({ event: 'stopped', code }))
    return { value: undefined, text: '', exitCode: code as ExitCode }
  },
})

/** An event of the service, for `--json`. `firstKey`: the first API key, if it was just created. */
export type ServiceEvent =
  | { readonly event: 'started'; readonly url: string; readonly firstKey: string | null }
  /** The key was created after the start, because the database was unreachable; or the start was interrupted. */
  | { readonly event: 'firstKey'; readonly firstKey: string }

const RUNNING = /^ +health +(https?:\S+)\/livez\b/m
const FIRST_KEY = /^ +(slk_\w+)\s*\n/m
const COMPLETE = /^Try it:$/m

/** Reads the output of the service to its end. Yields `started` once, and the first key whenever it is printed. */
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
    // From here on only a key can follow.
    text = ''
    firstKey = undefined
  }
  if (firstKey !== undefined) yield { event: 'firstKey', firstKey }
}
