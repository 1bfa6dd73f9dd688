import type { Clock, Random, SharedMemoryHandle } from '@sluice/core'
import { attachSharedMemoryStore, memoryStore, sharedMemoryStore } from '@sluice/core'
import type { RuleSet } from '@sluice/core/policy'
import { PolicyEngine } from '@sluice/core/policy'

/** One attempt. */
export interface Attempt {
  /** Address of the client. */
  readonly address: string
  /** The visible part of the key; undefined if it could not be read. */
  readonly keyId: string | undefined
}

/** Maximum number of counted addresses, and of counted key ids: bounds the memory. */
const MOST_KEYS = 16_384

const RESOURCE = 'authenticate'

/** An address is an IPv4 address or an IPv6 network of 64 bits, as for all limits. */
const RULES: RuleSet = {
  rules: [
    { name: 'failures-of-address', resource: RESOURCE, dimension: 'ip', limit: 20, window: '1m' },
    { name: 'failures-of-key', resource: RESOURCE, dimension: 'apiKey', limit: 10, window: '1m' },
  ],
}

/** Maximum number of threads over the life of the process: one that ends unexpectedly keeps its place. */
const MOST_THREADS = 256

/** Dependencies of {@link FailedAttempts}. */
export interface FailedAttemptsParts {
  readonly clock: Clock
  readonly random: Random
  /** The memory that threads share; undefined for a thread that counts alone. */
  readonly shared?: SharedMemoryHandle | undefined
}

/** The memory in which the threads of a process count failed attempts together. */
export function sharedFailures(clock: Clock): SharedMemoryHandle {
  return sharedMemoryStore({ maxKeys: MOST_KEYS, maxThreads: MOST_THREADS, clock }).handle()
}

/**
 * Limits failed attempts to authenticate: 20 per minute from one address, 10 per minute for one key id. Only failures
 * count. Each node counts for all of its threads, in a separate store, so that a flood of failures does not evict the
 * counters of callers.
 */
export class FailedAttempts {
  readonly #engine: PolicyEngine<'sync'>

  constructor({ clock, random, shared }: FailedAttemptsParts) {
    const store =
      shared === undefined
        ? memoryStore({ clock, random, maxKeys: MOST_KEYS })
        : attachSharedMemoryStore(shared, { clock })
    this.#engine = new PolicyEngine({ store, ruleSet: RULES, clock, random })
  }

  /** Counts a failure. Returns 0 if it was within the limits; else the milliseconds until the next one would be. */
  count({ address, keyId }: Attempt): number {
    const { allowed, retryAfterMs } = this.#engine.check({
      resource: RESOURCE,
      ip: address,
      ...(keyId === undefined ? {} : { apiKey: keyId }),
    })
    return allowed ? 0 : retryAfterMs
  }
}
