import { SluiceError } from '../errors.ts'
import { numberAdvice } from './option-advice.ts'

/** The valid values of an option, and their description. */
export interface OptionForm {
  readonly expected: string
  accepts(value: unknown): boolean
  /** Advice about a rejected value, if there is more to say than what was expected. */
  advise?(value: unknown, option: string): string | undefined
  /** Whether it is required. Default: false. */
  readonly isNeeded?: boolean
  /** Whether its value must not be shown, because it is or may contain a secret. */
  readonly isSecret?: boolean
}

/** Options by name. */
export type OptionForms = Readonly<Record<string, OptionForm>>

/** For options that are checked elsewhere. */
export const ANY: OptionForm = { expected: 'anything', accepts: () => true }
export const OBJECT: OptionForm = {
  expected: 'an object',
  accepts: (value) => typeof value === 'object' && value !== null,
}
export const FUNCTION: OptionForm = { expected: 'a function', accepts: (value) => typeof value === 'function' }
export const FLAG: OptionForm = { expected: 'true or false', accepts: (value) => typeof value === 'boolean' }

/** The cost of a call, in units. */
export const COST: OptionForm = {
  expected: 'a whole number of units, 0 or more, or a function that answers with one',
  accepts: (value) => typeof value === 'function' || isWhole(value, 0, Number.MAX_SAFE_INTEGER),
  advise: (value, option) => numberAdvice(option, value),
}

/** Throws `SLUICE_INVALID_OPTION` unless each of `options` has its form; undefined counts as absent. */
export function checkForms(options: object, forms: OptionForms): void {
  for (const [option, form] of Object.entries(forms)) {
    const value = (options as Readonly<Record<string, unknown>>)[option]
    if (value === undefined ? form.isNeeded !== true : form.accepts(value)) continue
    const advice = value === undefined ? `Add "${option}".` : form.advise?.(value, option)
    throw new SluiceError('SLUICE_INVALID_OPTION', {
      problem: value === undefined ? `"${option}" is missing` : `"${option}" cannot be used`,
      ...(value === undefined || form.isSecret === true ? {} : { received: value }),
      expected: form.expected,
      ...(advice === undefined ? {} : { action: advice }),
    })
  }
}

/** Whether `value` has a method of this name. */
export function can(value: unknown, method: string): boolean {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return false
  return typeof (value as Readonly<Record<string, unknown>>)[method] === 'function'
}

/** Whether `value` is a whole number of this range, both ends included. */
export function isWhole(value: unknown, least: number, most: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most
}
