import { hash } from 'node:crypto'
import { SluiceError } from '@sluice/core'
import type { ConsumerConfig } from '../config/gateway-config.ts'

/** A caller that was verified by a key or a token. */
export interface Principal {
  readonly user: string
  /** Fingerprint of the key; undefined for a token. */
  readonly apiKey: string | undefined
  readonly tenant: string | undefined
  readonly tier: string | undefined
}

const KEY_HASH = /^sha256:([0-9a-f]{64})$/i

/** Hexadecimal digits of a fingerprint: enough to tell the keys of one file apart. */
const FINGERPRINT_DIGITS = 16

/**
 * Keys of consumers by their SHA-256 hashes. A key is found by its hash, so neither the time of a lookup nor the memory
 * of this process says anything about keys that are not presented. A key that was found is remembered, so that it is
 * hashed once: at most as many as are configured, and none that is not valid.
 */
export class ConsumerKeys {
  readonly #keys = new Map<string, Principal>()
  readonly #names: ReadonlySet<string>
  /** Valid keys that were presented. */
  readonly #presented = new Map<string, Principal>()

  /** Throws `SLUICE_INVALID_OPTION` for a hash that cannot be used or that two consumers have. */
  constructor(consumers: readonly ConsumerConfig[]) {
    this.#names = new Set(consumers.map(({ name }) => name))
    for (const { name, keys, tenant, tier } of consumers) {
      for (const text of keys) {
        const digits = KEY_HASH.exec(text)?.[1]?.toLowerCase()
        if (digits === undefined) throw invalidHash(name, text)
        const owner = this.#keys.get(digits)
        if (owner !== undefined && owner.user !== name) throw sharedHash(owner.user, name)
        this.#keys.set(digits, { user: name, apiKey: digits.slice(0, FINGERPRINT_DIGITS), tenant, tier })
      }
    }
  }

  get size(): number {
    return this.#keys.size
  }

  /** Whether a consumer has this name. */
  hasName(name: string): boolean {
    return this.#names.has(name)
  }

  /** Whose key this is. Undefined if it is unknown. */
  find(key: string): Principal | undefined {
    if (this.#keys.size === 0) return undefined
    const known = this.#presented.get(key)
    if (known !== undefined) return known
    const principal = this.#keys.get(hash('sha256', key, 'hex'))
    if (principal !== undefined) this.#presented.set(key, principal)
    return principal
  }
}

/** The text may be the key itself, which must not reach a log. */
function invalidHash(consumer: string, text: unknown): SluiceError {
  const length = typeof text === 'string' ? `${text.length} characters` : typeof text
  return new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `a key of the consumer "${consumer}" cannot be used`,
    received: length,
    expected: '"sha256:" and the 64 hexadecimal digits of the SHA-256 hash of the key',
    action: `Write what this prints: printf %s "$KEY" | sha256sum`,
  })
}

function sharedHash(one: string, other: string): SluiceError {
  return new SluiceError('SLUICE_INVALID_OPTION', {
    problem: `the consumers "${one}" and "${other}" have the same key`,
    expected: 'keys that one consumer has',
    action: 'Create a key of its own for each consumer.',
  })
}
