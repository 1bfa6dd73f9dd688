import type { OptionForms } from '@sluice/core/options'
import { isWhole } from '@sluice/core/options'
import type { BackoffOptions } from '@sluice/runtime/portable'
import { backoffDelayMs, isRuntimeError } from '@sluice/runtime/portable'
import { invalidOption, numberForm } from './option-check.ts'

/** How often to try, and how long to wait in between. */
export interface TryOptions extends BackoffOptions {
  /** Tries, the first included; a whole number from 1, or Infinity; 5 when left out. */
  readonly maxTries?: number | undefined
}

const WAIT = numberForm('milliseconds: a number from 0', (value) => value >= 0 && value <= Number.MAX_SAFE_INTEGER)

/** The forms of {@link TryOptions}. */
export const TRY_FORMS: OptionForms = {
  maxTries: numberForm(
    'a whole number of tries from 1, the first included, or Infinity',
    (value) => value === Number.POSITIVE_INFINITY || isWhole(value, 1, Number.MAX_SAFE_INTEGER),
  ),
  baseMs: WAIT,
  capMs: WAIT,
}

/** What other libraries call {@link TryOptions}. */
export const OTHER_TRY_NAMES = {
  retries: 'maxTries',
  maxRetries: 'maxTries',
  attempts: 'maxTries',
  maxAttempts: 'maxTries',
  numOfAttempts: 'maxTries',
  tries: 'maxTries',
  limit: 'maxTries',
  delay: 'baseMs',
  retryDelay: 'baseMs',
  initialDelay: 'baseMs',
  startingDelay: 'baseMs',
  minTimeout: 'baseMs',
  maxDelay: 'capMs',
  maxTimeout: 'capMs',
} as const

/** Throws `SLUICE_CLIENT_INVALID_OPTION` for waits that contradict each other. Their forms have been checked. */
export function checkWaits({ baseMs, capMs }: TryOptions): void {
  try {
    backoffDelayMs(0, () => 0, { baseMs, capMs })
  } catch (error) {
    if (!isRuntimeError(error)) throw error
    throw invalidOption({ problem: `the wait ${error.received} cannot be used`, expected: error.expected })
  }
}
