/**
 * Every error code the core can raise, with what it means. Codes are part of the public API: they are never renamed or
 * reused. A test holds this list equal to `docs/reference/errors.md`.
 */
export const ERROR_CODES = {
  SLUICE_INVALID_DURATION:
    'A duration is not a positive number of milliseconds or a string such as "250ms", "1m", "1h30m".',
  SLUICE_INVALID_RULE: 'A rule has a missing, unknown, contradictory or out-of-range option.',
  SLUICE_INVALID_COST: 'A cost is not a whole number of units, 0 or more.',
  SLUICE_INVALID_KEY: 'A key is not a string, is empty, or is longer than 4096 UTF-16 code units.',
  SLUICE_INVALID_OPTION: 'An option of a limiter, store or call is missing, unknown or out of range.',
  SLUICE_INVALID_RULE_SET: 'A rule set, override or block has missing, unknown, contradictory or out-of-range parts.',
  SLUICE_RULE_CONFLICT: 'Two limiters use one store and one rule name for two different rules.',
  SLUICE_UNKNOWN_RULE: 'A call names a rule that this limiter does not have.',
  SLUICE_UNSUPPORTED: 'The store or the algorithm cannot do what was asked.',
  SLUICE_STORE_FULL: 'A bounded table of the store (blocks, reservations, attached threads) has no room left.',
  SLUICE_STORE_UNAVAILABLE: 'The store is unavailable, or rejected the call; nothing was changed by it.',
  SLUICE_OUTCOME_UNKNOWN: 'The store was asked and no answer came: what was asked for may have happened or not.',
  SLUICE_PROTOCOL: 'A store or a peer answered in a way that cannot be understood, or that contradicts this process.',
  SLUICE_CONFLICT: 'Another change was made meanwhile, or existing data conflicts with this one.',
  SLUICE_NOT_FOUND: 'What was named does not exist.',
  SLUICE_CONFIG_UNAVAILABLE: 'The configuration database gave no usable answer; limits go on with what was known last.',
  SLUICE_CONFIG_NOT_WRITABLE: 'The configuration database is not writable: its disk is full, or it is read-only.',
  SLUICE_CLOSED: 'The limiter or store was used after close().',
} as const

/** One of the codes in {@link ERROR_CODES}. */
export type ErrorCode = keyof typeof ERROR_CODES

/** The parts of an error message: what was wrong, what came in, what would have been right, what to do. */
export interface ErrorDetails {
  readonly problem: string
  readonly received?: unknown
  readonly expected?: string
  readonly action?: string
  readonly cause?: unknown
}

/**
 * Misuse or an outage; never a denial, which is a value. Recognise it by `code` (see {@link isSluiceError}), not by
 * `instanceof`, so that two copies of the package in one process do not matter.
 */
export class SluiceError extends Error {
  override readonly name = 'SluiceError'
  readonly code: ErrorCode
  readonly received: unknown
  readonly expected: string | undefined
  readonly action: string | undefined

  constructor(code: ErrorCode, details: ErrorDetails) {
    super(formatMessage(code, details), details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.received = details.received
    this.expected = details.expected
    this.action = details.action
  }
}

/** True for any error made by Sluice, also by another copy of the package; with `code`, only for that code. */
export function isSluiceError(value: unknown, code?: ErrorCode): value is SluiceError {
  if (!(value instanceof Error) || !('code' in value) || typeof value.code !== 'string') return false
  return code === undefined ? Object.hasOwn(ERROR_CODES, value.code) : value.code === code
}

function formatMessage(code: ErrorCode, details: ErrorDetails): string {
  const parts = [`${code}: ${details.problem}`]
  if ('received' in details) parts.push(`received ${describe(details.received)}`)
  if (details.expected !== undefined) parts.push(`expected ${details.expected}`)
  const message = `${parts.join('; ')}.`
  return details.action === undefined ? message : `${message} ${details.action}`
}

declare const URL: {
  canParse(text: string): boolean
  new (text: string): { readonly protocol: string; readonly host: string; readonly pathname: string }
}

/** A URL in messages: without user, password and parameters. */
export function urlWithoutSecrets(text: string): string {
  if (!URL.canParse(text)) return '(an invalid address)'
  const { protocol, host, pathname } = new URL(text)
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}`
}

const SHOWN_LENGTH = 60

/** A short, one-line, safe picture of any value: a wrong option may be huge or hold control characters. */
function describe(value: unknown): string {
  if (typeof value === 'string') {
    const shown = value.length > SHOWN_LENGTH ? value.slice(0, SHOWN_LENGTH) : value
    const quoted = JSON.stringify(shown)
    return value.length > SHOWN_LENGTH ? `${quoted}... (${value.length} characters)` : quoted
  }
  if (typeof value === 'number' || typeof value === 'boolean' || value === undefined || value === null)
    return String(value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'symbol') return 'a symbol'
  if (Array.isArray(value)) return `an array of ${value.length}`
  return `an object with ${Object.keys(value).slice(0, 8).join(', ') || 'no properties'}`
}
