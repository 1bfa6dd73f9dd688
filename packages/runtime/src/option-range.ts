import { describeValue, RuntimeError } from './runtime-error.ts'

/** The accepted range, both ends included. */
export interface OptionRange {
  readonly min: number
  readonly max: number
}

/** Returns `value` if it is a number in the range; otherwise throws `SLUICE_RUNTIME_INVALID_OPTION`. */
export function requireNumber(name: string, value: number, range: OptionRange): number {
  // NaN fails both comparisons.
  if (typeof value === 'number' && value >= range.min && value <= range.max) return value
  throw invalidOption(name, value, `a number from ${range.min} to ${range.max}`)
}

/** Returns `value` if it is an integer in the range; otherwise throws `SLUICE_RUNTIME_INVALID_OPTION`. */
export function requireInteger(name: string, value: number, range: OptionRange): number {
  if (Number.isSafeInteger(value) && value >= range.min && value <= range.max) return value
  throw invalidOption(name, value, `a whole number from ${range.min} to ${range.max}`)
}

/** Returns `value` if it is a non-empty string; otherwise throws `SLUICE_RUNTIME_INVALID_OPTION`. */
export function requireName(name: string, value: string): string {
  if (typeof value === 'string' && value.length > 0) return value
  throw invalidOption(name, value, 'text of at least one character')
}

/** Throws `SLUICE_RUNTIME_INVALID_OPTION` for an option that is not in `known`: a misspelt name must not be ignored. */
export function requireKnown(options: object, known: readonly string[]): void {
  for (const name in options) {
    if (known.includes(name)) continue
    throw new RuntimeError('SLUICE_RUNTIME_INVALID_OPTION', {
      received: `the option ${describeValue(name)}`,
      expected: `only ${known.join(', ')}`,
      action: 'Correct its name or remove it.',
    })
  }
}

/** The error for an invalid option or argument. */
export function invalidOption(name: string, value: unknown, expected: string): RuntimeError {
  return new RuntimeError('SLUICE_RUNTIME_INVALID_OPTION', {
    received: `${name} = ${describeValue(value)}`,
    expected,
    action: `Correct ${name} where it is passed in.`,
  })
}
