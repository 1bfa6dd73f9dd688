import { describeValue, RuntimeError } from './errors.ts'

/** The least and greatest value that is accepted, both included. */
export interface OptionRange {
  readonly min: number
  readonly max: number
}

/** Gives back `value` when it is a number of the range; otherwise throws `SLUICE_RUNTIME_INVALID_OPTION`. */
export function requireNumber(name: string, value: number, range: OptionRange): number {
  // Written so that NaN, which compares false with everything, is refused too.
  if (typeof value === 'number' && value >= range.min && value <= range.max) return value
  throw invalidOption(name, value, `a number from ${range.min} to ${range.max}`)
}

/** Gives back `value` when it is a whole number of the range; otherwise throws `SLUICE_RUNTIME_INVALID_OPTION`. */
export function requireInteger(name: string, value: number, range: OptionRange): number {
  if (Number.isSafeInteger(value) && value >= range.min && value <= range.max) return value
  throw invalidOption(name, value, `a whole number from ${range.min} to ${range.max}`)
}

/** Gives back `value` when it is text of at least one character; otherwise throws `SLUICE_RUNTIME_INVALID_OPTION`. */
export function requireName(name: string, value: string): string {
  if (typeof value === 'string' && value.length > 0) return value
  throw invalidOption(name, value, 'text of at least one character')
}

/** The error for an option or argument called `name` that is not what was `expected`. */
export function invalidOption(name: string, value: unknown, expected: string): RuntimeError {
  return new RuntimeError('SLUICE_RUNTIME_INVALID_OPTION', {
    received: `${name} = ${describeValue(value)}`,
    expected,
    action: `Correct ${name} where it is passed in.`,
  })
}
