import type { OptionForms } from '@sluice/core/options'
import { isWhole } from '@sluice/core/options'
import type { BackoffOptions } from '@sluice/runtime/portable'
import { backoffDelayMs, isRuntimeError } from '@sluice/runtime/portable'
import { invalidOption, numberForm } from '../errors/client-option-check.ts'

/** How often to retry, and how long to wait in between. */
export interface RetryLimits extends BackoffOptions {
  /** Most retries after the first call: 5 retries are up to 6 calls. A whole number from 0, or Infinity. Default: 5. */
  readonly maxRetries?: number | undefined
}

const WAIT = numberForm('milliseconds: a number from 0', (value) => value >= 0 && value <= Number.MAX_SAFE_INTEGER)

/** The forms of {@link RetryLimits}. */
export const RETRY_FORMS: OptionForms = {
  maxRetries: numberForm(
    'a whole number of retries from 0, or Infinity',
    (value) => value === Number.POSITIVE_INFINITY || isWhole(value, 0, Number.MAX_SAFE_INTEGER),
  ),
  baseMs: WAIT,
  capMs: WAIT,
}

/** What other libraries call {@link RetryLimits}. */
export const OTHER_RETRY_NAMES = {
  retries: 'maxRetries',
  maxTries: 'maxRetries',
  attempts: 'maxRetries',
  maxAttempts: 'maxRetries',
  numOfAttempts: 'maxRetries',
  tries: 'maxRetries',
  limit: 'maxRetries',
  delay: 'baseMs',
  retryDelay: 'baseMs',
  initialDelay: 'baseMs',
  startingDelay: 'baseMs',
  minTimeout: 'baseMs',
  maxDelay: 'capMs',
  maxTimeout: 'capMs',
} as const

/** Throws `SLUICE_CLIENT_INVALID_OPTION` for waits that contradict each other. Their forms have been checked. */
export function checkWaits({ baseMs, capMs }: RetryLimits): void {
  try {
    backoffDelayMs(0, () => 0, { baseMs, capMs })
  } catch (error) {
    if (!isRuntimeError(error)) throw error
    throw invalidOption({ problem: `the wait ${error.received} cannot be used`, expected: error.expected })
  }
}
