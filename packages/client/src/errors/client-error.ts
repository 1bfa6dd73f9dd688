import type { FieldProblem, ProblemCode, ProblemDocument, ReadinessCheck, ReadinessReason } from '@sluice/contract'
import { PROBLEMS } from '@sluice/contract'

/**
 * Every error code of this package and its meaning; problems of the service have their own codes. A code is never
 * reused for another meaning, so programs may depend on it; messages may change.
 */
export const CLIENT_ERRORS = {
  SLUICE_CLIENT_INVALID_OPTION: 'an option or argument of the client cannot be used',
  SLUICE_CLIENT_UNREACHABLE: 'the service cannot be reached',
  SLUICE_CLIENT_TIMEOUT: 'the service did not answer in time',
  SLUICE_CLIENT_UNEXPECTED_ANSWER: 'the answer is none that the service gives',
  SLUICE_CLIENT_RETRIES_EXHAUSTED: 'every call failed, the last retry included',
  SLUICE_CLIENT_TURN_REFUSED: 'the turn of a request does not come in time',
} as const

/** One of the codes of {@link CLIENT_ERRORS}, or of the problems of the service. */
export type ClientErrorCode = keyof typeof CLIENT_ERRORS | ProblemCode

/** Content of an error besides its code. */
export interface ClientErrorDetails {
  /** What happened, and what to do. Without secrets. */
  readonly detail: string
  readonly status?: number | undefined
  readonly errors?: readonly FieldProblem[] | undefined
  readonly checks?: readonly ReadinessCheck[] | undefined
  readonly reasons?: readonly ReadinessReason[] | undefined
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

/**
 * A failed call: the service answered with a problem, or was unavailable. A denied check is an answer, not an error.
 * Recognise it with {@link isClientError}.
 */
export class ClientError extends Error {
  override readonly name = 'ClientError'
  readonly code: ClientErrorCode
  /** The HTTP status; undefined without an answer. */
  readonly status: number | undefined
  /** What happened, and what to do. The message contains it, and the content of `errors`. */
  readonly detail: string
  /** Each invalid part of the request; empty if the problem is not in its fields. */
  readonly errors: readonly FieldProblem[]
  /** What the service waits for if it is not ready; else empty. */
  readonly checks: readonly ReadinessCheck[]
  /** Why the service is not ready; empty for other problems. */
  readonly reasons: readonly ReadinessReason[]
  /** Milliseconds after which to retry, if the service reported it. */
  readonly retryAfterMs: number | undefined

  constructor(code: ClientErrorCode, details: ClientErrorDetails) {
    super(
      `${code}: ${titleOf(code)}. ${messageOf(code, details)}`,
      'cause' in details ? { cause: details.cause } : undefined,
    )
    this.code = code
    this.status = details.status
    this.detail = details.detail
    this.errors = details.errors ?? []
    this.checks = details.checks ?? []
    this.reasons = details.reasons ?? []
    this.retryAfterMs = details.retryAfterMs
  }
}

/**
 * Whether `value` is an error of this package, optionally with this `code`. Compares name and code rather than the
 * class, so it also works with two copies of the package.
 */
export function isClientError(value: unknown, code?: ClientErrorCode): value is ClientError {
  if (!(value instanceof Error) || value.name !== 'ClientError' || !('code' in value)) return false
  return code === undefined ? isClientErrorCode(value.code) : value.code === code
}

/**
 * The error for a call whose last retry failed too. `cause` is the error of the last call; status, `errors`, `checks`
 * and `retryAfterMs` are copied from it.
 */
export function retriesExhausted(calls: number, lastError: unknown): ClientError {
  const last = isClientError(lastError) ? lastError : undefined
  return new ClientError('SLUICE_CLIENT_RETRIES_EXHAUSTED', {
    detail: `${calls} calls failed. The last one: ${last?.message ?? reasonOf(lastError)}`,
    status: last?.status,
    errors: last?.errors,
    checks: last?.checks,
    retryAfterMs: last?.retryAfterMs,
    cause: lastError,
  })
}

/** The error of the last call if `error` says that the retries are exhausted; else `error` itself. */
export function lastErrorOf(error: unknown): unknown {
  return isClientError(error, 'SLUICE_CLIENT_RETRIES_EXHAUSTED') ? error.cause : error
}

/** The error for a problem of the service; undefined if `value` is not a problem document of the service. */
export function problemError(value: unknown, retryAfterMs: number | undefined): ClientError | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { code, status, detail, errors, checks, reasons } = value as Partial<ProblemDocument>
  if (!isClientErrorCode(code) || typeof status !== 'number' || typeof detail !== 'string') return undefined
  const listed = Array.isArray(errors) ? errors : []
  return new ClientError(code, { status, detail, errors: listed, checks, reasons, retryAfterMs })
}

function isClientErrorCode(code: unknown): code is ClientErrorCode {
  return typeof code === 'string' && (Object.hasOwn(CLIENT_ERRORS, code) || Object.hasOwn(PROBLEMS, code))
}

/** Maximum number of fields in a message; `errors` has all. */
const MOST_TOLD = 5

/**
 * What happened and what to do, for readers who see only this line: with the problem of each field, and advice for
 * programs.
 */
function messageOf(code: ClientErrorCode, { detail, errors = [] }: ClientErrorDetails): string {
  const told = errors
    .slice(0, MOST_TOLD)
    .map(
      ({ path, received, expected, line }) =>
        `${path || 'the body'}${line === undefined ? '' : ` (line ${line})`}: received ${received}; expected ` +
        `${expected}.`,
    )
  if (errors.length > MOST_TOLD) told.push(`"errors" has ${errors.length - MOST_TOLD} more.`)
  // The service only mentions headers.
  if (code === 'SLUICE_HTTP_UNAUTHORIZED') told.push('Pass the API key to createClient as "token".')
  return [detail, ...told].join(' ')
}

function titleOf(code: ClientErrorCode): string {
  const title = Object.hasOwn(PROBLEMS, code)
    ? PROBLEMS[code as ProblemCode].title
    : CLIENT_ERRORS[code as keyof typeof CLIENT_ERRORS]
  return title.charAt(0).toUpperCase() + title.slice(1)
}

/** Why something failed, in the words of the innermost error: "fetch failed" is not helpful. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reasonOf).join('; ')
  if (error instanceof Error && error.cause instanceof Error) return reasonOf(error.cause)
  return error instanceof Error ? error.message : String(error)
}
