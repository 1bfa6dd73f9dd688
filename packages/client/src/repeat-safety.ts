import { isClientError } from './client-error.ts'
import type { ServiceRequest } from './exchange.ts'
import { wasNeverSent } from './never-sent.ts'

/** Statuses of answers by which something on the way says that it could not pass the request on, or got no answer. */
const PASSING: ReadonlySet<number | undefined> = new Set([408, 502, 503, 504])

/**
 * Whether the service has, for sure, done nothing of what it was asked: it was never reached, or it turned the request away and
 * said when to come back.
 */
export function isUntouched(error: unknown): boolean {
  if (!isClientError(error)) return false
  if (error.code === 'SLUICE_CLIENT_UNREACHABLE') return wasNeverSent(error.cause)
  return (error.status === 503 || error.status === 429) && error.retryAfterMs !== undefined
}

/**
 * Whether a request that failed may be sent again: when nothing was done, and when it does no harm if something was. A check
 * that may have been charged is not: it would be charged twice.
 */
export function mayRepeat({ isHarmlessTwice }: ServiceRequest, error: unknown): boolean {
  if (!isClientError(error)) return false
  if (isUntouched(error)) return true
  return isHarmlessTwice && (error.code === 'SLUICE_CLIENT_UNREACHABLE' || PASSING.has(error.status))
}
