import { createClient } from '@sluice/client'
import { urlWithoutSecrets } from '@sluice/core/options'
import type { Command, CommandContext, CommandResult } from './command-line/command.ts'
import { commandHelp, generalHelp, groupHelp, helpValue } from './command-line/help.ts'
import type { ParsedLine } from './command-line/parse.ts'
import { parseCommandLine } from './command-line/parse.ts'
import type { CommonValues } from './command-line/shared-flags.ts'
import { EXIT_CODES, failureJson, failureOf, failureText } from './output/cli-error.ts'
import type { Every } from './output/terminal.ts'
import { Progress } from './output/terminal.ts'

/** What the command line gets from its process. */
export interface CliParts
  extends Pick<
    CommandContext,
    'environment' | 'terminal' | 'nowMs' | 'wait' | 'nodeVersion' | 'readText' | 'programs' | 'signal'
  > {
  readonly commands: readonly Command[]
  readonly every: Every
  /** Version of this package. */
  readonly version: string
}

const DEFAULT_URL = 'http://127.0.0.1:8080'
const DEFAULT_TIMEOUT_MS = 10_000

/** Runs a command line and returns the exit code. Rejects only for a bug in this program. */
export async function runCli(args: readonly string[], parts: CliParts): Promise<number> {
  const progress = new Progress(parts.terminal, parts.every)
  try {
    const line = parseCommandLine(args, { commands: parts.commands, nowMs: parts.nowMs() })
    if (line.kind === 'version') return printVersion(line.isJson, parts)
    if (line.kind === 'help') return await printHelp(line, parts, progress)
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
  // A live command shuts down by itself when it is interrupted. Any other command is abandoned.
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
      // No retries: a person at a terminal prefers a quick error.
      return createClient({ url, token, timeoutMs: common.timeout ?? DEFAULT_TIMEOUT_MS, retry: false })
    },
    url: urlWithoutSecrets(url),
  })
  const service = at(givenUrl ?? DEFAULT_URL)
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

function printVersion(isJson: boolean, { terminal, version }: CliParts): number {
  terminal.print(isJson ? JSON.stringify({ version }) : version)
  return EXIT_CODES.ok
}

async function printHelp(
  { command, group, isJson, isAsked }: ParsedLine & { kind: 'help' },
  parts: CliParts,
  progress: Progress,
): Promise<number> {
  const { commands, terminal } = parts
  const described = commands.filter(
    (each) => command === each || (command === undefined && (group === undefined || each.name.startsWith(`${group} `))),
  )
  const text = isJson ? JSON.stringify(helpValue(described)) : helpText(command, group, commands)
  if (isAsked) terminal.print(text)
  else terminal.printError(text)
  if (command?.passesOn && isAsked && !isJson) {
    // Its flags are those of another program, which prints them.
    terminal.print('')
    const common = { json: false, url: undefined, key: undefined, timeout: undefined }
    await command.run({ flags: {}, args: {}, rest: ['--help'] }, contextOf(common, parts, progress))
  }
  return isAsked ? EXIT_CODES.ok : EXIT_CODES.usage
}

function helpText(command: Command | undefined, group: string | undefined, commands: readonly Command[]): string {
  if (command !== undefined) return commandHelp(command)
  return group === undefined ? generalHelp(commands) : groupHelp(group, commands)
}
