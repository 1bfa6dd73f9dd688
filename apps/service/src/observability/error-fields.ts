import type { LogFields } from '@sluice/runtime'

const DEEPEST_CAUSE = 4
const LONGEST_MESSAGE = 1000

/** Messages of Sluice errors continue with the received value, which may name a caller, after one of these. */
const RECEIVED = /(?:; received |\. Received )/

/**
 * Log fields of an error: name, code, message and causes, and the stack of an unexpected one. Without received values
 * and without extra properties of other libraries, such as command arguments: both may name callers.
 */
export function errorFields(error: unknown, depth = 1): LogFields {
  if (!(error instanceof Error)) return { type: typeof error }
  const { name, message, stack, cause } = error
  const code =
    'code' in error && (typeof error.code === 'string' || typeof error.code === 'number') ? error.code : undefined
  const isOurs = typeof code === 'string' && code.startsWith('SLUICE_')
  return {
    name,
    ...(code === undefined ? {} : { code }),
    message: (isOurs ? message.split(RECEIVED, 1)[0]! : message).slice(0, LONGEST_MESSAGE),
    // System errors, such as a failed connect, have no useful stack.
    ...(isOurs || 'syscall' in error || stack === undefined ? {} : { stack: framesOf(stack) }),
    ...(cause === undefined || depth >= DEEPEST_CAUSE ? {} : { cause: errorFields(cause, depth + 1) }),
  }
}

/** The stack without the message, which comes first and may have several lines. */
function framesOf(stack: string): string {
  return stack
    .split('\n')
    .filter((line) => /^ {4}at /.test(line))
    .join('\n')
}
