/** How often an argument is there. */
export type PositionalCount = 'needed' | 'optional' | 'several'

/** An argument of a command that is known by its place. */
export interface Positional<C extends PositionalCount = PositionalCount> {
  readonly count: C
  readonly help: string
}

/** Arguments by their names, in the order of their places; only the last may be left out or there several times. */
export type Positionals = Readonly<Record<string, Positional>>

type PositionalValue<C extends PositionalCount> = C extends 'needed'
  ? string
  : C extends 'optional'
    ? string | undefined
    : readonly string[]

/** What was given. */
export type GivenPositionals<P extends Positionals> = { readonly [Name in keyof P]: PositionalValue<P[Name]['count']> }

/** An argument that must be there. */
export function needed(help: string): Positional<'needed'> {
  return { count: 'needed', help }
}

/** An argument that may be left out. */
export function optional(help: string): Positional<'optional'> {
  return { count: 'optional', help }
}

/** One or more. */
export function several(help: string): Positional<'several'> {
  return { count: 'several', help }
}

/** `<file>`, `[<version>]` or `<file>...`, as the help shows it. */
export function placeholder(name: string, { count }: Positional): string {
  if (count === 'needed') return `<${name}>`
  return count === 'optional' ? `[<${name}>]` : `<${name}>...`
}
