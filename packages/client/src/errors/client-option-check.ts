import type { ErrorDetails, OptionForm, OptionForms, OptionTaker } from '@sluice/core/options'
import { checkForms, checkOptionNames, isSluiceError, numberAdvice, SluiceError } from '@sluice/core/options'
import { ClientError } from './client-error.ts'

/** A function or class that takes options, with the form of each option. */
export interface CheckedTaker extends OptionTaker {
  readonly forms: OptionForms
  /** Advice for a value that is not an options object; undefined if the intention is unclear. */
  readonly advise?: (options: unknown) => string | undefined
}

/** Something that takes the options of `forms`. */
export function optionTaker(taker: Omit<CheckedTaker, 'options'>): CheckedTaker {
  return { ...taker, options: Object.keys(taker.forms) }
}

/**
 * Throws `SLUICE_CLIENT_INVALID_OPTION` unless `options` is an object that contains only options of `taker`, each of
 * its form.
 */
export function checkOptions(options: unknown, taker: CheckedTaker): void {
  const { name, example, forms } = taker
  const action = taker.advise?.(options)
  if (action !== undefined || typeof options === 'string') {
    throw invalidOption({
      // The received value is not shown: an address may contain a password.
      problem: `the options of ${name} cannot be used`,
      expected: `an object such as ${example}`,
      ...(action === undefined ? {} : { action }),
    })
  }
  asClientError(() => {
    checkOptionNames(options, taker)
    checkForms(options as object, forms)
  })
}

/** Runs a check of the core, and converts its error into a client error with the same words. */
export function asClientError(check: () => void): void {
  try {
    check()
  } catch (error) {
    throw isSluiceError(error) ? clientErrorOf(error) : error
  }
}

/** The error for an invalid option or argument. */
export function invalidOption(details: ErrorDetails): ClientError {
  return clientErrorOf(new SluiceError('SLUICE_INVALID_OPTION', details))
}

function clientErrorOf({ code, message }: SluiceError): ClientError {
  // A separate sentence. Names of functions keep their case.
  const detail = message.slice(`${code}: `.length).replace(/^the/, 'The')
  return new ClientError('SLUICE_CLIENT_INVALID_OPTION', { detail })
}

/** A number that {@link numberAdvice} has advice about. */
export function numberForm(expected: string, accepts: (value: number) => boolean): OptionForm {
  return {
    expected,
    accepts: (value) => typeof value === 'number' && accepts(value),
    advise: (value, option) => numberAdvice(option, value),
  }
}

/** A choice of strings. */
export function choiceForm(...choices: readonly [string, string, ...string[]]): OptionForm {
  const quoted = choices.map((choice) => `"${choice}"`)
  return {
    expected: `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`,
    accepts: (value) => choices.some((choice) => choice === value),
  }
}
