import type { Dimension, ValidCheckRequest } from '@sluice/contract'
import type { Decision, Limiter } from '@sluice/core'
import { joinKey } from '@sluice/core'

/** A check request as the checker takes it: the rule counts by user, so there must be one. */
export type IdentifiedRequest = ValidCheckRequest<'userId'>

/** A decision, and who was counted for it. */
export interface Verdict {
  readonly decision: Decision
  readonly dimension: Dimension
}

/** Decides check requests, and charges what it allows. Every door of the service asks here. */
export interface Checker {
  check(request: IdentifiedRequest): Verdict | Promise<Verdict>
}

/**
 * Checks each user against one rule. The key carries its dimension, so a user named like an address never shares a counter
 * with that address.
 */
export function userChecker(limiter: Limiter<'sync'>): Checker {
  return {
    check({ userId, tokens }) {
      return { decision: limiter.check(joinKey(['user', userId]), { cost: tokens }), dimension: 'user' }
    },
  }
}
