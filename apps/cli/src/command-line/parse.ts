import { parseArgs } from 'node:util'
import { nearestName } from '@sluice/core/options'
import { usageError } from '../output/cli-error.ts'
import { quoted } from '../output/text.ts'
import type { Command, Flag, Flags, Invocation, Positionals } from './command.ts'
import { parseFlagValue, placeholder } from './command.ts'
import type { CommonValues } from './shared-flags.ts'
import { COMMON_FLAGS, CONNECTION_FLAGS } from './shared-flags.ts'

/** A parsed command line. */
export type ParsedLine =
  | {
      readonly kind: 'run'
      readonly command: Command
      readonly invocation: Invocation<Flags, Positionals>
      readonly common: CommonValues
    }
  | {
      readonly kind: 'help'
      readonly command: Command | undefined
      readonly group: string | undefined
      readonly isJson: boolean
      /** Whether the user asked for help. False: the command is incomplete. */
      readonly isAsked: boolean
    }
  | { readonly kind: 'version'; readonly isJson: boolean }

interface LineParts {
  readonly commands: readonly Command[]
  readonly nowMs: number
}

/** Parses a command line. Throws `SLUICE_CLI_USAGE` for the first problem. */
export function parseCommandLine(args: readonly string[], { commands, nowMs }: LineParts): ParsedLine {
  if (args[0] === 'help') return { ...helpOf(args.slice(1), commands), isJson: args.includes('--json') }
  const { command, group, rest } = findCommand(args, commands)
  const isHelp = rest.includes('--help') || rest.includes('-h')
  const isJson = rest.includes('--json')
  if (command === undefined) {
    if (group === undefined && rest.includes('--version')) return { kind: 'version', isJson }
    if (rest.some((arg) => !['--help', '-h', '--json'].includes(arg))) {
      throw usageError(`${quoted(rest[0]!)} needs a command. "sluice --help" lists all commands.`)
    }
    return { kind: 'help', command, group, isJson, isAsked: isHelp }
  }
  if (command.passesOn) {
    const isOwnHelp = rest[0] === '--help' || rest[0] === '-h'
    if (isOwnHelp) return { kind: 'help', command, group, isJson, isAsked: true }
    const common = { json: isJson, url: undefined, key: undefined, timeout: undefined }
    const passed = rest.filter((arg, index) => !(arg === '--' && index === 0))
    return { kind: 'run', command, invocation: { flags: {}, args: {}, rest: passed }, common }
  }
  if (isHelp) return { kind: 'help', command, group, isJson, isAsked: true }
  return { kind: 'run', command, ...parseArguments(command, rest, nowMs) }
}

function helpOf(words: readonly string[], commands: readonly Command[]): Omit<ParsedLine & { kind: 'help' }, 'isJson'> {
  const { command, group } = findCommand(words, commands)
  return { kind: 'help', command, group, isAsked: true }
}

/** Every flag that a command accepts. */
export function flagsOf(command: Command): Flags {
  return { ...command.flags, ...(command.asksService ? CONNECTION_FLAGS : {}), ...COMMON_FLAGS }
}

function parseArguments(
  command: Command,
  args: readonly string[],
  nowMs: number,
): { readonly invocation: Invocation<Flags, Positionals>; readonly common: CommonValues } {
  const known = flagsOf(command)
  const options = Object.fromEntries(
    Object.entries(known).map(([name, { kind }]) => [
      name,
      { type: kind === 'switch' ? 'boolean' : 'string' } as const,
    ]),
  )
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true })
  const given = new Map<string, unknown>()
  const positionals: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value)
    if (token.kind === 'option') addFlag(token, given, { command, known, nowMs })
  }
  const flags = Object.fromEntries(Object.entries(known).map(([name, flag]) => [name, given.get(name) ?? absent(flag)]))
  const invocation = { flags, args: takePositionals(command, positionals), rest: [] } as unknown as Invocation<
    Flags,
    Positionals
  >
  return { invocation, common: { json: false, url: undefined, key: undefined, timeout: undefined, ...flags } }
}

interface FlagToken {
  readonly name: string
  readonly rawName: string
  readonly value?: string | undefined
  readonly inlineValue?: boolean | undefined
}

function addFlag(
  { name, rawName, value, inlineValue = false }: FlagToken,
  given: Map<string, unknown>,
  { command, known, nowMs }: { command: Command; known: Flags; nowMs: number },
): void {
  const flag = Object.hasOwn(known, name) && rawName.startsWith('--') ? known[name] : undefined
  if (flag === undefined) throw unknownFlag(rawName, command, Object.keys(known))
  if (flag.kind === 'switch') {
    if (value !== undefined) throw usageError(`--${name} takes no value.`)
    given.set(name, true)
    return
  }
  const looksLikeFlag = !inlineValue && value !== undefined && /^-\D/.test(value)
  if (value === undefined || looksLikeFlag) {
    throw usageError(
      `--${name} needs a value: --${name} ${flag.argument}. For a value that starts with a dash, use --${name}=-x.`,
    )
  }
  const read = parseFlagValue(name, flag, { text: value, nowMs })
  if (flag.kind === 'texts') given.set(name, [...((given.get(name) ?? []) as unknown[]), read])
  else if (given.has(name)) throw usageError(`--${name} is given more than once; expected once.`)
  else given.set(name, read)
}

function absent({ kind }: Flag): unknown {
  if (kind === 'switch') return false
  return kind === 'texts' ? [] : undefined
}

function unknownFlag(rawName: string, command: Command, names: readonly string[]): Error {
  const name = rawName.replace(/^-+/, '')
  const nearest = nearestName(name, names)
  const meant = nearest === undefined ? '' : ` Did you mean --${nearest}?`
  return usageError(
    `"sluice ${command.name}" has no flag ${quoted(rawName)}.${meant} "sluice ${command.name} --help" lists all.`,
  )
}

function takePositionals(command: Command, values: readonly string[]): Readonly<Record<string, unknown>> {
  const given: Record<string, unknown> = {}
  let next = 0
  for (const [name, positional] of Object.entries(command.args)) {
    if (positional.count === 'several') {
      given[name] = values.slice(next)
      next = Math.max(values.length, next + 1)
    } else given[name] = values[next++]
    const isMissing = positional.count !== 'optional' && next > values.length
    if (isMissing) throw usageError(`${placeholder(name, positional)} is missing: ${usageOf(command)}.`)
  }
  const [extra] = values.slice(next)
  if (extra !== undefined) throw usageError(`${quoted(extra)} is an unexpected argument: ${usageOf(command)}.`)
  return given
}

/** Usage line of a command. */
export function usageOf(command: Command): string {
  const args = Object.entries(command.args).map(([name, positional]) => placeholder(name, positional))
  const hasFlags = command.passesOn || Object.keys(command.flags).length > 0
  return ['sluice', command.name, ...args, ...(hasFlags ? ['[flags]'] : [])].join(' ')
}

interface NamedCommand {
  /** Undefined if the line names no command, or only a group. */
  readonly command: Command | undefined
  /** First word of commands such as `rules put`. */
  readonly group: string | undefined
  /** Everything but the words of the command, in order. */
  readonly rest: readonly string[]
}

/** Finds the command. Flags may come before and between its words. Throws if the words name no command. */
function findCommand(args: readonly string[], commands: readonly Command[]): NamedCommand {
  const words = wordIndexes(args)
  const [first, second] = words.map((index) => args[index]!)
  const without = (count: number): readonly string[] =>
    args.filter((_, index) => !words.slice(0, count).includes(index))
  if (first === undefined) return { command: undefined, group: undefined, rest: args }
  const members = commands.filter(({ name }) => name.startsWith(`${first} `))
  const single = commands.find(({ name }) => name === first)
  // `gateway` is a command, and so is `gateway status`.
  const hasMember = members.some(({ name }) => name === `${first} ${second}`)
  if (single !== undefined && !hasMember) return { command: single, group: undefined, rest: without(1) }
  if (members.length === 0)
    throw unknownCommand(first, [...new Set(commands.map(({ name }) => name.split(' ')[0]!))], '')
  if (second === undefined) return { command: undefined, group: first, rest: without(1) }
  const member = members.find(({ name }) => name === `${first} ${second}`)
  if (member !== undefined) return { command: member, group: first, rest: without(2) }
  const names = members.map(({ name }) => name.slice(first.length + 1))
  throw unknownCommand(second, names, `${first} `)
}

/** Indexes of the first two arguments that are neither flags nor values of connection flags. */
function wordIndexes(args: readonly string[]): readonly number[] {
  const indexes: number[] = []
  for (let index = 0; index < args.length && indexes.length < 2; index++) {
    const arg = args[index]!
    if (!arg.startsWith('-')) indexes.push(index)
    else if (Object.hasOwn(CONNECTION_FLAGS, arg.slice(2))) index++
  }
  return indexes
}

function unknownCommand(word: string, names: readonly string[], before: string): Error {
  const nearest = nearestName(word, names)
  const meant = nearest === undefined ? '' : ` Did you mean "sluice ${before}${nearest}"?`
  return usageError(
    `There is no command ${quoted(before + word)}.${meant} "sluice${before === '' ? '' : ` ${before.trim()}`} ` +
      `--help" lists all: ${names.join(', ')}.`,
  )
}
