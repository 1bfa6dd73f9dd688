import type { ErrorDetails, OptionForm, OptionForms, OptionTaker } from '@sluice/core/options'
import { checkForms, checkOptionNames, isSluiceError, numberAdvice, SluiceError } from '@sluice/core/options'
import { ClientError } from './client-error.ts'

/** Something of this package that takes options, with the form of each. */
export interface CheckedTaker extends OptionTaker {
  readonly forms: OptionForms
  /** What to write in place of what are no options at all; undefined when there is no telling what was meant. */
  readonly advise?: (options: unknown) => string | undefined
}

/** Something that takes the options that `forms` names. */
export function optionTaker(taker: Omit<CheckedTaker, 'options'>): CheckedTaker {
  return { ...taker, options: Object.keys(taker.forms) }
}

/**
 * Throws `SLUICE_CLIENT_INVALID_OPTION` unless `options` is an object that has only options of `taker`, each of its
 * form.
 */
export function checkOptions(options: unknown, taker: CheckedTaker): void {
  const { name, example, forms } = taker
  const action = taker.advise?.(options)
  if (action !== undefined || typeof options === 'string') {
    throw invalidOption({
      // What was given is not shown: an address may hold a password.
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

/** Does a check of the core; what that throws becomes an error of the client, in the same words. */
export function asClientError(check: () => void): void {
  try {
    check()
  } catch (error) {
    throw isSluiceError(error) ? clientErrorOf(error) : error
  }
}

/** The error for an option or argument that cannot be used. */
export function invalidOption(details: ErrorDetails): ClientError {
  return clientErrorOf(new SluiceError('SLUICE_INVALID_OPTION', details))
}

function clientErrorOf({ code, message }: SluiceError): ClientError {
  // A sentence of its own. Names of functions stay as they are written.
  const detail = message.slice(`${code}: `.length).replace(/^the/, 'The')
  return new ClientError('SLUICE_CLIENT_INVALID_OPTION', { detail })
}

/** A number that {@link numberAdvice} knows more about. */
export function numberForm(expected: string, accepts: (value: number) => boolean): OptionForm {
  return {
    expected,
    accepts: (value) => typeof value === 'number' && accepts(value),
    advise: (value, option) => numberAdvice(option, value),
  }
}

/** One of a few texts. */
export function choiceForm(...choices: readonly [string, string, ...string[]]): OptionForm {
  const quoted = choices.map((choice) => `"${choice}"`)
  return {
    expected: `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`,
    accepts: (value) => choices.some((choice) => choice === value),
  }
}
