import { SluiceError } from '../errors.ts'
import type { AbortSignalLike } from '../system/abort.ts'
import type { Clock, Timers } from '../system/clock-and-timers.ts'
import type { Random } from '../system/random.ts'
import { optionAdvice } from './option-advice.ts'

/**
 * A function or class that takes options: its name in messages, its options, and an example. `otherNames`: names of the
 * options in other libraries.
 */
export interface OptionTaker {
  /** Such as `the memory store`. */
  readonly name: string
  readonly options: readonly string[]
  /** Such as `{ maxKeys: 100000 }`. */
  readonly example: string
  readonly otherNames?: Readonly<Record<string, string>>
}

/**
 * Throws `SLUICE_INVALID_OPTION` unless `options` is an object with known options only: a misspelt option must not be
 * ignored.
 */
export function checkOptionNames(options: unknown, taker: OptionTaker): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: `the options of ${taker.name} cannot be used`,
      received: options,
      expected: `an object such as ${taker.example}`,
    })
  }
  for (const option in options) if (!taker.options.includes(option)) throw unknownOption(option, taker)
}

/** Throws `SLUICE_INVALID_OPTION` for a clock, random source or timers of the wrong form, such as `Date.now`. */
export function checkSources({ clock, random, timers }: { clock?: Clock; random?: Random; timers?: Timers }): void {
  checkMethod('clock', clock, { method: 'nowMicros', example: '{ nowMicros: () => Date.now() * 1000 }' })
  checkMethod('random', random, { method: 'nextUint32', example: '{ nextUint32: () => number }' })
  checkMethod('timers', timers, { method: 'schedule', example: '{ schedule: (delayMs, run) => cancel }' })
}

/** Accepted values of {@link checkWhole}, both ends included. */
export interface WholeRange {
  /** Name of what takes the option, such as `the memory store`. */
  readonly of?: string
  /** Default: 1. */
  readonly least?: number
  readonly most: number
  /** Advice about other values. */
  readonly action?: string
}

/** Returns `value`. Throws `SLUICE_INVALID_OPTION` unless it is a whole number in the range. */
export function checkWhole(option: string, value: number, { of, least = 1, most, action }: WholeRange): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `"${option}"${of === undefined ? '' : ` of ${of}`} cannot be used`,
    received: value,
    expected: `a whole number from ${least} to ${most}`,
    ...(action === undefined ? {} : { action }),
  })
}

/** The option `maxWaiting`, or its default. Throws `SLUICE_INVALID_OPTION` unless it is a whole number, 0 or more. */
export function checkMaxWaiting(maxWaiting = 10_000): number {
  if (Number.isInteger(maxWaiting) && maxWaiting >= 0) return maxWaiting
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: '"maxWaiting" cannot be used',
    received: maxWaiting,
    expected: 'a whole number, 0 or more',
  })
}

/** Throws `SLUICE_INVALID_OPTION` unless `signal` is an `AbortSignal` or left out. */
export function checkSignal(signal: unknown): asserts signal is AbortSignalLike | undefined {
  if (signal === undefined || isSignal(signal)) return
  const isController = typeof signal === 'object' && signal !== null && 'signal' in signal && isSignal(signal.signal)
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: '"signal" cannot be used',
    received: signal,
    expected: 'an AbortSignal, such as AbortSignal.timeout(1000)',
    ...(isController ? { action: 'It is an AbortController: pass its "signal".' } : {}),
  })
}

function isSignal(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return 'aborted' in value && typeof (value as Partial<AbortSignalLike>).addEventListener === 'function'
}

function checkMethod(
  option: string,
  value: unknown,
  { method, example }: { readonly method: string; readonly example: string },
): void {
  if (value === undefined) return
  const isObject = typeof value === 'object' && value !== null
  if (isObject && typeof (value as Readonly<Record<string, unknown>>)[method] === 'function') return
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `"${option}" cannot be used`,
    received: value,
    expected: `an object with the method ${method}, such as ${example}`,
  })
}

function unknownOption(option: string, { name, options, otherNames = {} }: OptionTaker): SluiceError {
  const other = Object.hasOwn(otherNames, option) ? `Did you mean "${otherNames[option]}"?` : undefined
  const action = other ?? optionAdvice(option, options)
  return new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `${name} has no option "${option}"`,
    expected: `only ${options.join(', ')}`,
    ...(action === undefined ? {} : { action }),
  })
}
