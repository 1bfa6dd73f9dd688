import { usageError } from '../cli-error.ts'
import type { Command } from '../command.ts'
import { SERVICE_FLAGS } from './common-flags.ts'
import { nearestName } from './nearest-name.ts'
import { shown } from './shown.ts'

/** Which command was named, and what else stands on the line. */
export interface NamedCommand {
  /** Undefined when no command was named, or only the group. */
  readonly command: Command | undefined
  /** The first word of commands such as `rules put`; undefined when none was named. */
  readonly group: string | undefined
  /** Everything but the words of the command, in its order. */
  readonly rest: readonly string[]
}

/** Finds the words that name a command; flags may stand before and between them. Throws for words that name none. */
export function namedCommand(args: readonly string[], commands: readonly Command[]): NamedCommand {
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
    else if (Object.hasOwn(SERVICE_FLAGS, arg.slice(2))) place++
  }
  return places
}

function unknownCommand(word: string, names: readonly string[], before: string): Error {
  const nearest = nearestName(word, names)
  const meant = nearest === undefined ? '' : ` Did you mean "sluice ${before}${nearest}"?`
  return usageError(
    `There is no command ${shown(before + word)}.${meant} "sluice${before === '' ? '' : ` ${before.trim()}`} --help" lists all: ${names.join(', ')}.`,
  )
}
