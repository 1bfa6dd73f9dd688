import type { Command, CommandContext, CommandResult } from '../command-line/command.ts'
import { passThroughCommand } from '../command-line/command.ts'
import type { ExitCode } from '../output/cli-error.ts'
import { CliError } from '../output/cli-error.ts'
import { forwardErrors } from './child-program.ts'

export const serveCommand: Command = passThroughCommand({
  name: 'serve',
  summary: 'Start the service',
  description:
    'Runs the service in the foreground until it is stopped. Flags are its settings, which "sluice serve --help" ' +
    'lists. With --json it prints one line per event. "started" has url, adminUrl (with --admin-port), ' +
    'pid and firstKey (null unless the key was just created). "firstKey" has firstKey, if the key is created later ' +
    'because the database was unreachable. "stopped" has code.',
  examples: ['serve --port 8080', 'serve --redis-url redis://127.0.0.1:6379 --threads auto'],
  run: runService,
})

/** Runs the service with these arguments until it ends. */
export async function runService(
  args: readonly string[],
  { programs, terminal, isJson }: Pick<CommandContext, 'programs' | 'terminal' | 'isJson'>,
): Promise<CommandResult> {
  const passed = args.filter((arg) => arg !== '--json')
  const program = programs.start('@sluice/service', { args: passed, capture: isJson ? 'events' : 'nothing' })
  if (program === undefined) {
    throw new CliError('SLUICE_CLI_PROGRAM_MISSING', {
      detail: 'The package @sluice/service is not installed. Install the package again: "npm install sluice".',
    })
  }
  if (!isJson) return { value: undefined, text: '', exitCode: (await program.ended) as ExitCode }
  const ended = forwardErrors(program, terminal)
  for await (const event of serviceEvents(program.events)) {
    terminal.print(JSON.stringify(event.event === 'started' ? { ...event, pid: program.pid } : event))
  }
  const code = await ended
  terminal.print(JSON.stringify({ event: 'stopped', code }))
  return { value: undefined, text: '', exitCode: code as ExitCode }
}

/** An event of the service, for `--json`. `firstKey`: the first API key, if it was just created. */
export type ServiceEvent =
  | {
      readonly event: 'started'
      readonly url: string
      /** Of the admin API, if it has a listener of its own. */
      readonly adminUrl?: string
      readonly firstKey: string | null
    }
  /** The key was created after the start, because the database was unreachable; or the start was interrupted. */
  | { readonly event: 'firstKey'; readonly firstKey: string }

/**
 * Turns the messages of the service into events. The service sends `{ event: 'firstKey', firstKey }` when it has
 * created the first API key, and `{ event: 'started', url, adminUrl }` when it listens.
 */
export async function* serviceEvents(messages: AsyncIterable<unknown>): AsyncGenerator<ServiceEvent, void, void> {
  let isStarted = false
  let firstKey: string | null = null
  for await (const message of messages) {
    const { event, url, adminUrl, firstKey: key } = message as Readonly<Record<string, string | undefined>>
    if (event === 'started' && url !== undefined) {
      isStarted = true
      yield { event, url, ...(adminUrl !== undefined && { adminUrl }), firstKey }
      firstKey = null
    } else if (event === 'firstKey' && key !== undefined) {
      if (isStarted) yield { event, firstKey: key }
      else firstKey = key
    }
  }
  if (firstKey !== null) yield { event: 'firstKey', firstKey }
}
