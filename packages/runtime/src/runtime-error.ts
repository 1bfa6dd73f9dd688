/**
 * Every error code of this package and what it means. A code is never reused for another meaning, so programs may
 * decide by it; messages may change.
 */
export const RUNTIME_ERRORS = {
  SLUICE_RUNTIME_INVALID_OPTION: 'an option or argument is out of its range',
  SLUICE_RUNTIME_INVALID_PORT: 'an injected clock or random source gave an impossible value',
  SLUICE_RUNTIME_RING_EMPTY: 'the hash ring has no servers',
  SLUICE_RUNTIME_RING_DUPLICATE_SERVER: 'the hash ring already has a server of this name',
  SLUICE_RUNTIME_GRAPH_DUPLICATE_PART: 'two parts of the startup graph have the same name',
  SLUICE_RUNTIME_GRAPH_UNKNOWN_DEPENDENCY: 'a part depends on a part that does not exist',
  SLUICE_RUNTIME_GRAPH_CYCLE: 'parts of the startup graph depend on each other in a circle',
  SLUICE_RUNTIME_GRAPH_ALREADY_STARTED: 'the startup graph was started or stopped before',
  SLUICE_RUNTIME_GRAPH_INTERRUPTED: 'the startup graph was stopped before it had started',
  SLUICE_RUNTIME_PART_START_FAILED: 'a part failed to start',
  SLUICE_RUNTIME_PART_STOP_FAILED: 'a part failed to stop',
  SLUICE_RUNTIME_STOP_FAILED: 'not every part stopped cleanly',
  SLUICE_RUNTIME_CLOCK_BACKWARDS: 'the clock went back further than allowed',
  SLUICE_RUNTIME_CLOCK_STALLED: 'the clock does not advance',
  SLUICE_RUNTIME_CLOCK_OUT_OF_RANGE: 'the clock is outside the years that an id can hold',
  SLUICE_RUNTIME_INVALID_ID: 'the value is not a unique id',
  SLUICE_RUNTIME_RETRIES_EXHAUSTED: 'every call failed, the last retry included',
} as const

/** One of the codes of {@link RUNTIME_ERRORS}. */
export type RuntimeErrorCode = keyof typeof RUNTIME_ERRORS

/** Details of an error. Each string is a phrase of the message. */
export interface RuntimeErrorDetails {
  /** What was received. */
  readonly received: string
  /** What was expected. */
  readonly expected: string
  /** What to do, as a sentence. */
  readonly action: string
  /** The original error. */
  readonly cause?: unknown
  /** Related failures, in the order in which they happened. */
  readonly alsoFailed?: readonly RuntimeError[] | undefined
}

/**
 * Misuse of a building block of this package, or a failure that it passes on. Detect it with {@link isRuntimeError}.
 */
export class RuntimeError extends Error {
  override readonly name: string = 'RuntimeError'
  readonly code: RuntimeErrorCode
  readonly received: string
  readonly expected: string
  readonly action: string
  /** Related failures; empty for most errors. */
  readonly alsoFailed: readonly RuntimeError[]

  constructor(code: RuntimeErrorCode, details: RuntimeErrorDetails) {
    super(messageOf(code, details), 'cause' in details ? { cause: details.cause } : undefined)
    this.code = code
    this.received = details.received
    this.expected = details.expected
    this.action = details.action
    this.alsoFailed = details.alsoFailed ?? []
  }
}

/** Several failures in one error: `errors` lists them in the order in which they happened. */
export class RuntimeAggregateError extends AggregateError {
  override readonly name = 'RuntimeAggregateError'
  declare readonly errors: RuntimeError[]
  readonly code: RuntimeErrorCode
  readonly received: string
  readonly expected: string
  readonly action: string

  constructor(code: RuntimeErrorCode, errors: readonly RuntimeError[], details: RuntimeErrorDetails) {
    super(errors, messageOf(code, details))
    this.code = code
    this.received = details.received
    this.expected = details.expected
    this.action = details.action
  }
}

/**
 * Whether `value` is an error of this package, and has this `code` if given.
 *
 * Checks the code and not the class, so it works if two copies of the package are loaded, or if the error came from
 * another thread.
 */
export function isRuntimeError(value: unknown, code?: RuntimeErrorCode): value is RuntimeError | RuntimeAggregateError {
  if (typeof value !== 'object' || value === null || !('code' in value)) return false
  if (typeof value.code !== 'string' || !Object.hasOwn(RUNTIME_ERRORS, value.code)) return false
  return code === undefined || value.code === code
}

const LONGEST_SHOWN = 80

/** Formats a value for a message: short, strings quoted, never the contents of an object. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') {
    return JSON.stringify(value.length > LONGEST_SHOWN ? `${value.slice(0, LONGEST_SHOWN)}...` : value)
  }
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  return String(value)
}

function messageOf(code: RuntimeErrorCode, details: RuntimeErrorDetails): string {
  const { received, expected, action } = details
  return `${code}: ${RUNTIME_ERRORS[code]}. Received ${received}; expected ${expected}. ${action}`
}
