import type { BackoffOptions } from '@sluice/runtime/portable'
import { backoffDelayMs, isRuntimeError } from '@sluice/runtime/portable'
import { ClientError } from './client-error.ts'

/** How often to try, and how long to wait in between. */
export interface TryOptions extends BackoffOptions {
  /** Tries, the first included; a whole number from 1, or Infinity; 5 when left out. */
  readonly maxTries?: number | undefined
}

/** Throws `SLUICE_CLIENT_INVALID_OPTION` for numbers that cannot be used. */
export function checkTryOptions({ maxTries = 1, baseMs, capMs }: TryOptions): void {
  if (maxTries !== Number.POSITIVE_INFINITY && !(Number.isSafeInteger(maxTries) && maxTries >= 1)) {
    throw invalidOption(`maxTries ${maxTries}`, 'a whole number from 1, or Infinity')
  }
  try {
    backoffDelayMs(0, () => 0, { baseMs, capMs })
  } catch (error) {
    if (!isRuntimeError(error)) throw error
    throw invalidOption(error.received, error.expected)
  }
}

/** The error for an option that cannot be used; both are phrases without secrets. */
export function invalidOption(received: string, expected: string): ClientError {
  return new ClientError('SLUICE_CLIENT_INVALID_OPTION', { detail: `Received ${received}; expected ${expected}.` })
}
