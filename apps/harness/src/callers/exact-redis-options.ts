import type { Decision } from '@sluice/core'
import type { RedisStoreOptions } from '@sluice/store-redis'

/**
 * How the harness uses a Redis store: nothing is answered without Redis. There are no leases and no remembered denials,
 * an answer is waited for far longer than it takes on any machine, and what is not answered is denied, which shows.
 */
export const EXACT_STORE: Required<Pick<RedisStoreOptions, 'deadlineMs' | 'failureMode' | 'denyCache' | 'leases'>> = {
  deadlineMs: 30_000,
  failureMode: 'closed',
  denyCache: false,
  leases: false,
}

/** The decision, if Redis made it; throws otherwise: a count with a decision made elsewhere would show nothing. */
export function requireStoreAnswer(decision: Decision): Decision {
  const { failure } = decision
  if (failure === undefined) return decision
  throw new Error(`A decision was made without Redis (${failure.cause}).`)
}
