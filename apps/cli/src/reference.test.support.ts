import type { Command, Flags } from './command-line/command.ts'
import { placeholder } from './command-line/command.ts'
import { usageOf } from './command-line/parse.ts'
import { COMMON_FLAGS, CONNECTION_FLAGS } from './command-line/shared-flags.ts'
import { EXIT_CODE_MEANINGS } from './output/cli-error.ts'

// The parts of the reference of the command line that say what the table of commands says.

/** The flags that all commands have, as the reference shows them. */
export function commonFlagsReference(): string {
  return [flagTable(COMMON_FLAGS), 'Commands that ask the service also take these:', flagTable(CONNECTION_FLAGS)].join(
    '\n\n',
  )
}

/** The exit codes, as the reference shows them. */
export function exitCodesReference(): string {
  const rows = Object.entries(EXIT_CODE_MEANINGS).map(([code, meaning]) => `| ${code} | ${meaning} |`)
  return ['| code | meaning |', '|---|---|', ...rows].join('\n')
}

/** All commands, as the reference shows them. */
export function commandsReference(commands: readonly Command[]): string {
  return commands.map(commandReference).join('\n\n')
}

function commandReference(command: Command): string {
  const { name, summary, description, args, flags, examples } = command
  const rows = Object.entries(args).map(([each, positional]) => row(placeholder(each, positional), positional.help))
  return [
    `### \`sluice ${name}\``,
    `${summary}. ${description}`,
    block([usageOf(command)]),
    ...(rows.length === 0 ? [] : [['| argument | meaning |', '|---|---|', ...rows].join('\n')]),
    ...(Object.keys(flags).length === 0 ? [] : [flagTable(flags)]),
    examples.length === 1 ? 'Example:' : 'Examples:',
    block(examples.map((example) => `sluice ${example}`)),
  ].join('\n\n')
}

function flagTable(flags: Flags): string {
  const rows = Object.entries(flags).map(([name, { argument, help }]) => row(`--${name} ${argument}`.trim(), help))
  return ['| flag | meaning |', '|---|---|', ...rows].join('\n')
}

function row(code: string, text: string): string {
  return `| \`${code.replaceAll('|', '\\|')}\` | ${text} |`
}

function block(lines: readonly string[]): string {
  return ['```sh', ...lines, '```'].join('\n')
}
