import { createClient } from '@sluice/client'
import type { Command, CommandContext, CommandResult, ProgramHost } from './command-line/command.ts'
import { commandHelp, generalHelp, groupHelp, helpValue } from './command-line/help.ts'
import type { ParsedLine } from './command-line/parse.ts'
import { parseCommandLine } from './command-line/parse.ts'
import type { CommonValues } from './command-line/shared-flags.ts'
import type { Wait } from './doctor/server-probe.ts'
import { EXIT_CODES, failureJson, failureOf, failureText } from './output/cli-error.ts'
import type { Every } from './output/progress.ts'
import { Progress } from './output/progress.ts'
import type { Terminal } from './output/terminal.ts'
import type { CliEnvironment } from './settings.ts'

/** What the command line works with. */
export interface CliParts {
  readonly commands: readonly Command[]
  readonly environment: CliEnvironment
  readonly terminal: Terminal
  readonly nowMs: () => number
  readonly wait: Wait
  readonly every: Every
  /** Of the Node that runs this. */
  readonly nodeVersion: string
  readonly readText: (path: string) => Promise<string>
  readonly programs: ProgramHost
  /** Aborts when the user interrupts. */
  readonly signal: AbortSignal
  /** Of the program. */
  readonly version: string
}

const USUAL_URL = 'http://127.0.0.1:8080'
const USUAL_TIMEOUT_MS = 10_000

/** Does what a command line says, and answers the exit code. Rejects only for a mistake in this program. */
export async function runCli(args: readonly string[], parts: CliParts): Promise<number> {
  const progress = new Progress(parts.terminal, parts.every)
  try {
    const line = parseCommandLine(args, { commands: parts.commands, nowMs: parts.nowMs() })
    if (line.kind === 'version') return printVersion(line.isJson, parts)
    if (line.kind === 'help') return printHelp(line, parts)
    return await runCommand(line, parts, progress)
  } catch (error) {
    progress.stop()
    if (parts.signal.aborted) return EXIT_CODES.interrupted
    const failure = failureOf(error)
    if (failure === undefined) throw error
    parts.terminal.printError(args.includes('--json') ? failureJson(failure) : failureText(failure))
    return failure.exitCode
  }
}

async function runCommand(
  { command, invocation, common }: ParsedLine & { kind: 'run' },
  parts: CliParts,
  progress: Progress,
): Promise<number> {
  const context = contextOf(common, parts, progress)
  if (!command.isLive) progress.start(command.asksService ? `asking ${context.url}` : `sluice ${command.name}`)
  const running = command.run(invocation, context)
  // A live command ends in its own order when it is interrupted; of any other nothing is waited for.
  const result: CommandResult = await (command.isLive ? running : Promise.race([running, interruption(parts.signal)]))
  progress.stop()
  if (common.json) {
    if (result.value !== undefined) parts.terminal.print(JSON.stringify(result.value))
  } else if (result.text !== '') parts.terminal.print(result.text, result.decorate)
  return result.exitCode ?? EXIT_CODES.ok
}

function interruption(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
}

function contextOf(common: CommonValues, parts: CliParts, progress: Progress): CommandContext {
  const { environment, terminal, nowMs, wait, nodeVersion, signal, readText, programs } = parts
  const givenUrl = common.url ?? environment.url
  const token = common.key ?? environment.apiKey
  const at: CommandContext['at'] = (url) => ({
    get client() {
      // A person who waits wants to know what is wrong, and not that it was tried five times.
      return createClient({ url, token, timeoutMs: common.timeout ?? USUAL_TIMEOUT_MS, retry: false })
    },
    url: shownAddress(url),
  })
  const service = at(givenUrl ?? USUAL_URL)
  return {
    get client() {
      return service.client
    },
    url: service.url,
    isUrlGiven: givenUrl !== undefined,
    at,
    hasKey: token !== undefined,
    isJson: common.json,
    environment,
    terminal,
    progress,
    nowMs,
    wait,
    nodeVersion,
    signal,
    readText,
    programs,
  }
}

/** An address without what may be secret in it. */
function shownAddress(url: string): string {
  if (!URL.canParse(url)) return 'the service'
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname === '/' ? '' : pathname}`
}

function printVersion(isJson: boolean, { terminal, version }: CliParts): number {
  terminal.print(isJson ? JSON.stringify({ version }) : version)
  return EXIT_CODES.ok
}

function printHelp({ command, group, isJson, isAsked }: ParsedLine & { kind: 'help' }, parts: CliParts): number {
  const { commands, terminal } = parts
  const meant = commands.filter(
    (each) => command === each || (command === undefined && (group === undefined || each.name.startsWith(`${group} `))),
  )
  const text = isJson ? JSON.stringify(helpValue(meant)) : helpText(command, group, commands)
  if (isAsked) terminal.print(text)
  else terminal.printError(text)
  return isAsked ? EXIT_CODES.ok : EXIT_CODES.usage
}

function helpText(command: Command | undefined, group: string | undefined, commands: readonly Command[]): string {
  if (command !== undefined) return commandHelp(command)
  return group === undefined ? generalHelp(commands) : groupHelp(group, commands)
}
