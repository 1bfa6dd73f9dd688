import type { LogFields } from '@sluice/runtime'

const DEEPEST_CAUSE = 4
const LONGEST_MESSAGE = 1000

/** Errors of Sluice say what they received, which may be the name of a caller, after one of these. */
const RECEIVED = /(?:; received |\. Received )/

/**
 * What the log says about an error: its kind, code, message and causes, and where it came from when it is none that was
 * foreseen. What an error of Sluice received is left out, and so is everything that other programs hang on theirs, such as the
 * arguments of a command: both may name callers.
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
    // What the system could not do, such as connect, comes from nowhere in particular.
    ...(isOurs || 'syscall' in error || stack === undefined ? {} : { stack: framesOf(stack) }),
    ...(cause === undefined || depth >= DEEPEST_CAUSE ? {} : { cause: errorFields(cause, depth + 1) }),
  }
}

/** Where it happened, without the message, which comes first and may have several lines. */
function framesOf(stack: string): string {
  return stack
    .split('\n')
    .filter((line) => /^ {4}at /.test(line))
    .join('\n')
}
