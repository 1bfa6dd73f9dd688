import type { Clock, Random } from '@sluice/core'
import { memoryStore } from '@sluice/core'
import { PolicyEngine, type RuleSet } from '@sluice/core/policy'

/** Counts a failure from an address. Returns 0 within the limit, else the milliseconds until one would be within it. */
export type CountFailure = (address: string) => number

/** Addresses counted at once. */
const MOST_ADDRESSES = 16_384

const RESOURCE = 'authenticate'

const RULES: RuleSet = {
  rules: [{ name: 'failures-of-address', resource: RESOURCE, dimension: 'ip', limit: 20, window: '1m' }],
}

/**
 * Limits failed authentications to 20 per minute and address, or IPv6 network of 64 bits. Only failures count: a valid
 * credential is accepted whatever others behind the same address did. It has a store of its own, so that a flood of
 * failures does not evict the counters of callers.
 */
export function failedAuthentications({ clock, random }: { clock: Clock; random: Random }): CountFailure {
  const store = memoryStore({ clock, random, maxKeys: MOST_ADDRESSES })
  const engine = new PolicyEngine({ store, ruleSet: RULES, clock, random })
  return (ip) => {
    const { allowed, retryAfterMs } = engine.check({ resource: RESOURCE, ip })
    return allowed ? 0 : retryAfterMs
  }
}
