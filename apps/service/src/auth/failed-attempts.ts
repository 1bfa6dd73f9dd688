import type { Clock, Random, RuleSet } from '@sluice/core'
import { memoryStore, PolicyEngine } from '@sluice/core'

/** What one attempt came with. */
export interface Attempt {
  /** Address of the other end of the connection. */
  readonly remoteAddress: string
  /** The visible part of the key; undefined when none could be read. */
  readonly keyId: string | undefined
}

/** Addresses and key ids that are counted at once, for each of the two; what it takes is bounded whatever comes. */
const MOST_KEYS = 16_384

const RESOURCE = 'authenticate'

/** An address is an IPv4 address or an IPv6 network of 64 bits, as for all limits. */
const RULES: RuleSet = {
  rules: [
    { name: 'failures-of-address', resource: RESOURCE, dimension: 'ip', limit: 20, window: '1m' },
    { name: 'failures-of-key', resource: RESOURCE, dimension: 'apiKey', limit: 10, window: '1m' },
  ],
}

/**
 * Limits failed attempts to authenticate: 20 a minute from one address, 10 a minute for one key id. Only failures are counted,
 * by each thread for itself, in a memory of their own: no flood of them takes room from the counters of callers.
 */
export class FailedAttempts {
  readonly #engine: PolicyEngine<'sync'>

  constructor({ clock, random }: { readonly clock: Clock; readonly random: Random }) {
    const store = memoryStore({ clock, random, maxKeys: MOST_KEYS })
    this.#engine = new PolicyEngine({ store, ruleSet: RULES, clock, random })
  }

  /** Counts a failure. 0 when it was within the limits; else the milliseconds after which one would be again. */
  count({ remoteAddress, keyId }: Attempt): number {
    const { allowed, retryAfterMs } = this.#engine.check({
      resource: RESOURCE,
      ip: remoteAddress,
      ...(keyId === undefined ? {} : { apiKey: keyId }),
    })
    return allowed ? 0 : retryAfterMs
  }
}
