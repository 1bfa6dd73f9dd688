import { parseArgs } from 'node:util'
import { nearestName } from '@sluice/core/options'
import { usageError } from '../output/cli-error.ts'
import { quoted } from '../output/text.ts'
import type { Flag, Flags, Positionals } from './arguments.ts'
import { placeholder, readFlagValue } from './arguments.ts'
import type { Command, Invocation } from './command.ts'
import type { CommonValues } from './shared-flags.ts'
import { COMMON_FLAGS, CONNECTION_FLAGS } from './shared-flags.ts'

/** What a command line asks for. */
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
      /** Whether the help was asked for; else the line is not complete. */
      readonly isAsked: boolean
    }
  | { readonly kind: 'version'; readonly isJson: boolean }

/** What a command line is read with. */
interface LineParts {
  readonly commands: readonly Command[]
  readonly nowMs: number
}

/** Reads a command line. Throws `SLUICE_CLI_USAGE` for the first thing on it that cannot be used. */
export function parseCommandLine(args: readonly string[], { commands, nowMs }: LineParts): ParsedLine {
  if (args[0] === 'help') return { ...helpOf(args.slice(1), commands), isJson: args.includes('--json') }
  const { command, group, rest } = namedCommand(args, commands)
  const isHelp = rest.includes('--help') || rest.includes('-h')
  const isJson = rest.includes('--json')
  if (command === undefined) {
    if (group === undefined && rest.includes('--version')) return { kind: 'version', isJson }
    if (rest.some((arg) => !['--help', '-h', '--json'].includes(arg))) {
      throw usageError(`Which command? ${quoted(rest[0]!)} stands there without one. "sluice --help" lists all.`)
    }
    return { kind: 'help', command, group, isJson, isAsked: isHelp }
  }
  if (command.passesOn) {
    const isOwnHelp = rest[0] === '--help' || rest[0] === '-h'
    if (isOwnHelp) return { kind: 'help', command, group, isJson, isAsked: true }
    const common = { json: isJson, url: undefined, key: undefined, timeout: undefined }
    const passed = rest.filter((arg, place) => !(arg === '--' && place === 0))
    return { kind: 'run', command, invocation: { flags: {}, args: {}, rest: passed }, common }
  }
  if (isHelp) return { kind: 'help', command, group, isJson, isAsked: true }
  return { kind: 'run', command, ...readLine(command, rest, nowMs) }
}

function helpOf(words: readonly string[], commands: readonly Command[]): Omit<ParsedLine & { kind: 'help' }, 'isJson'> {
  const { command, group } = namedCommand(words, commands)
  return { kind: 'help', command, group, isAsked: true }
}

/** Every flag that a command takes. */
export function flagsOf(command: Command): Flags {
  return { ...command.flags, ...(command.asksService ? CONNECTION_FLAGS : {}), ...COMMON_FLAGS }
}

function readLine(
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
  const places: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') places.push(token.value)
    if (token.kind === 'option') takeFlag(token, given, { command, known, nowMs })
  }
  const flags = Object.fromEntries(Object.entries(known).map(([name, flag]) => [name, given.get(name) ?? absent(flag)]))
  const invocation = { flags, args: takePlaces(command, places), rest: [] } as unknown as Invocation<Flags, Positionals>
  return { invocation, common: { json: false, url: undefined, key: undefined, timeout: undefined, ...flags } }
}

interface FlagToken {
  readonly name: string
  readonly rawName: string
  readonly value?: string | undefined
  readonly inlineValue?: boolean | undefined
}

function takeFlag(
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
    throw usageError(`--${name} needs a value: --${name} ${flag.argument}. One that begins with a dash: --${name}=-x.`)
  }
  const read = readFlagValue(name, flag, { text: value, nowMs })
  if (flag.kind === 'texts') given.set(name, [...((given.get(name) ?? []) as unknown[]), read])
  else if (given.has(name)) throw usageError(`--${name} stands there more than once; expected it once.`)
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

function takePlaces(command: Command, places: readonly string[]): Readonly<Record<string, unknown>> {
  const given: Record<string, unknown> = {}
  let next = 0
  for (const [name, positional] of Object.entries(command.args)) {
    if (positional.count === 'several') {
      given[name] = places.slice(next)
      next = Math.max(places.length, next + 1)
    } else given[name] = places[next++]
    const isMissing = positional.count !== 'optional' && next > places.length
    if (isMissing) throw usageError(`${placeholder(name, positional)} is missing: ${usageOf(command)}.`)
  }
  const [extra] = places.slice(next)
  if (extra !== undefined) throw usageError(`${quoted(extra)} is one argument too many: ${usageOf(command)}.`)
  return given
}

/** How a command is written. */
export function usageOf(command: Command): string {
  const args = Object.entries(command.args).map(([name, positional]) => placeholder(name, positional))
  const hasFlags = command.passesOn || Object.keys(command.flags).length > 0
  return ['sluice', command.name, ...args, ...(hasFlags ? ['[flags]'] : [])].join(' ')
}

/** Which command was named, and what else stands on the line. */
interface NamedCommand {
  /** Undefined when no command was named, or only the group. */
  readonly command: Command | undefined
  /** The first word of commands such as `rules put`; undefined when none was named. */
  readonly group: string | undefined
  /** Everything but the words of the command, in its order. */
  readonly rest: readonly string[]
}

/** Finds the words that name a command; flags may stand before and between them. Throws for words that name none. */
function namedCommand(args: readonly string[], commands: readonly Command[]): NamedCommand {
  const words = wordPlaces(args)
  const [first, second] = words.map((place) => args[place]!)
  const without = (count: number): readonly string[] =>
    args.filter((_, place) => !words.slice(0, count).includes(place))
  if (first === undefined) return { command: undefined, group: undefined, rest: args }
  const single = commands.find(({ name }) => name === first)
  if (single !== undefined) return { command: single, group: undefined, rest: without(1) }
  const members = commands.filter(({ name }) => name.startsWith(`${first} `))
  if (members.length === 0)
    throw unknownCommand(first, [...new Set(commands.map(({ name }) => name.split(' ')[0]!))], '')
  if (second === undefined) return { command: undefined, group: first, rest: without(1) }
  const member = members.find(({ name }) => name === `${first} ${second}`)
  if (member !== undefined) return { command: member, group: first, rest: without(2) }
  const names = members.map(({ name }) => name.slice(first.length + 1))
  throw unknownCommand(second, names, `${first} `)
}

/** The places of what is neither a flag nor the value of one that may stand before a command. */
function wordPlaces(args: readonly string[]): readonly number[] {
  const places: number[] = []
  for (let place = 0; place < args.length && places.length < 2; place++) {
    const arg = args[place]!
    if (!arg.startsWith('-')) places.push(place)
    else if (Object.hasOwn(CONNECTION_FLAGS, arg.slice(2))) place++
  }
  return places
}

function unknownCommand(word: string, names: readonly string[], before: string): Error {
  const nearest = nearestName(word, names)
  const meant = nearest === undefined ? '' : ` Did you mean "sluice ${before}${nearest}"?`
  return usageError(
    `There is no command ${quoted(before + word)}.${meant} "sluice${before === '' ? '' : ` ${before.trim()}`} --help" lists all: ${names.join(', ')}.`,
  )
}
