import { EXIT_CODE_MEANINGS } from '../output/cli-error.ts'
import type { Command, Flags } from './command.ts'
import { placeholder } from './command.ts'
import { flagsOf, usageOf } from './parse.ts'

const WIDTH = 100

/** Help without a command. */
export function generalHelp(commands: readonly Command[]): string {
  return [
    'Command line of the Sluice rate limit service.',
    '',
    'Usage: sluice <command> [arguments] [flags]',
    '',
    list(commands.map(({ name, summary }) => [name, summary])),
    '',
    '"sluice <command> --help" shows details and examples. Every command accepts --json.',
    'SLUICE_URL: address of the service. Default: http://127.0.0.1:8080. SLUICE_API_KEY: API key.',
    '',
    'Exit codes:',
    list(Object.entries(EXIT_CODE_MEANINGS)),
  ].join('\n')
}

/** Help for commands with the same first word. */
export function groupHelp(group: string, commands: readonly Command[]): string {
  const members = commands.filter(({ name }) => name.startsWith(`${group} `))
  return [
    `Usage: sluice ${group} <command> [arguments] [flags]`,
    '',
    list(members.map(({ name, summary }) => [name, summary])),
    '',
    `"sluice ${group} <command> --help" shows details and examples.`,
  ].join('\n')
}

/** Help for one command. */
export function commandHelp(command: Command): string {
  const args = Object.entries(command.args).map(
    ([name, positional]) => [placeholder(name, positional), positional.help] as const,
  )
  const flags = command.passesOn ? [] : flagLines(flagsOf(command))
  return [
    `${command.summary}.`,
    '',
    `Usage: ${usageOf(command)}`,
    '',
    wrapped(command.description, 0),
    ...(args.length === 0 ? [] : ['', 'Arguments:', list(args)]),
    ...(flags.length === 0 ? [] : ['', 'Flags:', list(flags)]),
    '',
    command.examples.length === 1 ? 'Example:' : 'Examples:',
    ...command.examples.map((example) => `  sluice ${example}`),
  ].join('\n')
}

/** Result of `--help --json`. */
export function helpValue(commands: readonly Command[]): unknown {
  const values = commands.map((command) => ({
    name: command.name,
    summary: command.summary,
    description: command.description,
    usage: usageOf(command),
    arguments: Object.entries(command.args).map(([name, { count, help }]) => ({ name, count, help })),
    flags: Object.entries(command.passesOn ? {} : flagsOf(command)).map(
      ([name, { kind, argument, help, choices }]) => ({
        name: `--${name}`,
        kind,
        argument,
        help,
        ...(choices === undefined ? {} : { choices }),
      }),
    ),
    examples: command.examples.map((example) => `sluice ${example}`),
  }))
  return { commands: values, exitCodes: EXIT_CODE_MEANINGS }
}

function flagLines(flags: Flags): readonly (readonly [string, string])[] {
  return Object.entries(flags).map(([name, { argument, help }]) => [`--${name} ${argument}`.trim(), help])
}

/** Two columns; the second is wrapped. */
function list(entries: readonly (readonly [string, string])[]): string {
  const width = Math.min(36, Math.max(...entries.map(([name]) => name.length)))
  return entries
    .map(([name, text]) => {
      const first = `  ${name.padEnd(width)}`
      const rest = wrapped(text, width + 4)
      return first.length > width + 2 ? `${first}\n${' '.repeat(width + 4)}${rest}` : `${first}  ${rest}`
    })
    .join('\n')
}

/** Wraps at {@link WIDTH} characters. All lines but the first are indented. */
function wrapped(text: string, indent: number): string {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= WIDTH - indent)
      lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines.join(`\n${' '.repeat(indent)}`)
}
