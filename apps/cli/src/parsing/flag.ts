/** What may stand after a flag, and what it becomes. */
export interface FlagValues {
  readonly text: string
  /** Any number of times. */
  readonly texts: readonly string[]
  /** A whole number from 0 on. */
  readonly whole: number
  readonly number: number
  /** Milliseconds. */
  readonly duration: number
  /** Milliseconds since 1970: a date, or a duration from now. */
  readonly instant: number
  /** Nothing: it is there or not. */
  readonly switch: boolean
}

/** A kind of flag. */
export type FlagKind = keyof FlagValues

/** A flag of a command. */
export interface Flag<K extends FlagKind = FlagKind, C extends string = string> {
  readonly kind: K
  /** What stands for its value in the help, such as `<name>`; empty for a switch. */
  readonly argument: string
  /** What it does, and what holds when it is left out. */
  readonly help: string
  /** The only values, where these are few. */
  readonly choices?: readonly C[]
}

/** Flags by their names, without the two dashes. */
export type Flags = Readonly<Record<string, Flag>>

type FlagValue<F extends Flag> =
  F extends Flag<infer K, infer C>
    ? K extends 'switch'
      ? boolean
      : K extends 'texts'
        ? readonly string[]
        : (K extends 'text' ? C : FlagValues[K]) | undefined
    : never

/** What was given: undefined, false or an empty list for what was left out. */
export type GivenFlags<F extends Flags> = { readonly [Name in keyof F]: FlagValue<F[Name]> }

/** A flag with a value of this kind. */
export function flag<K extends Exclude<FlagKind, 'switch'>>(kind: K, argument: string, help: string): Flag<K> {
  return { kind, argument, help }
}

/** A flag whose value is one of `choices`. */
export function choice<const C extends string>(choices: readonly C[], help: string): Flag<'text', C> {
  return { kind: 'text', argument: `<${choices.join('|')}>`, help, choices }
}

/** A flag without a value. */
export function toggle(help: string): Flag<'switch'> {
  return { kind: 'switch', argument: '', help }
}
