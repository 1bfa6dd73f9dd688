import { isClientError } from '../errors/client-error.ts'
import type { ServiceRequest } from '../http/send-request.ts'

/** Statuses of answers by which something on the way says that it could not pass the request on, or got no answer. */
const PASSING: ReadonlySet<number | undefined> = new Set([408, 502, 503, 504])

/**
 * Whether the service has certainly not processed the request: it was never reached, or it turned the request
 * away and said when to come back.
 */
export function isUntouched(error: unknown): boolean {
  if (!isClientError(error)) return false
  if (error.code === 'SLUICE_CLIENT_UNREACHABLE') return wasNeverSent(error.cause)
  return (error.status === 503 || error.status === 429) && error.retryAfterMs !== undefined
}

/**
 * Whether a request that failed may be sent again: when nothing was done, and when it does no harm if something was. A
 * check that may have been charged is not: it would be charged twice.
 */
export function mayRepeat({ isIdempotent }: ServiceRequest, error: unknown): boolean {
  if (!isClientError(error)) return false
  if (isUntouched(error)) return true
  return isIdempotent && (error.code === 'SLUICE_CLIENT_UNREACHABLE' || PASSING.has(error.status))
}

/** Codes that say that no connection was made. */
const NO_CONNECTION: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** Errors have causes, but not for ever. */
const DEEPEST_CAUSE = 8

/**
 * Whether an error of `fetch` shows that the request was never sent: there was no connection to send it on. False where
 * that is not known, as in browsers, which do not tell.
 */
export function wasNeverSent(error: unknown): boolean {
  let inner = error
  for (let depth = 0; depth < DEEPEST_CAUSE && inner instanceof Error; depth++) {
    const { code, syscall } = inner as { readonly code?: unknown; readonly syscall?: unknown }
    if (NO_CONNECTION.has(code) || syscall === 'connect' || syscall === 'getaddrinfo') return true
    // One error for each address that a name has.
    if (inner instanceof AggregateError) return inner.errors.length > 0 && inner.errors.every(wasNeverSent)
    inner = inner.cause
  }
  return false
}
