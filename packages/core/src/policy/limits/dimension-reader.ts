import { joinKey } from '../../store/key.ts'
import { countedAddress } from '../matching/ip-address.ts'
import { canonicalDimension } from '../matching/rule-name.ts'
import type { PolicyRequest } from '../rule-set/policy-request.ts'
import { sha256 } from './sha256.ts'

/** Identities longer than this, in UTF-16 code units, are counted by their hash. */
const LONGEST_ENTITY = 512

/** The entity of rules that count all calls together. */
const ALL_CALLERS = 'all'

/** How addresses become identities. */
export interface AddressOptions {
  /** Leading bits of an IPv6 address that identify a caller: a network assigns at least 64 bits to one customer. */
  readonly ipv6PrefixLength: number
}

/** Reads one dimension from requests. */
export class DimensionReader {
  /** In canonical spelling. */
  readonly dimension: string
  /** Whether an address is part of the identity. */
  readonly hasAddress: boolean
  readonly #names: readonly string[]
  readonly #addresses: AddressOptions
  readonly #prefix: string

  constructor(dimension: string, addresses: AddressOptions) {
    this.dimension = canonicalDimension(dimension)
    this.#names = this.dimension.split('+')
    this.hasAddress = this.#names.includes('ip')
    this.#addresses = addresses
    this.#prefix = `${this.dimension}:`
  }

  /** The entity of a request, or undefined if it has none: a missing or empty identity does not count. */
  read(request: PolicyRequest): string | undefined {
    if (this.#names.length === 1) return this.#one(this.#names[0]!, request)
    const parts: string[] = []
    for (const name of this.#names) {
      const part = this.#one(name, request)
      if (part === undefined) return undefined
      parts.push(part)
    }
    return joinKey(parts)
  }

  /** The key of an entity's counters: different for every dimension and entity, and of bounded length. */
  keyOf(entity: string): string {
    return entity.length <= LONGEST_ENTITY ? this.#prefix + entity : `${this.dimension}#${sha256(entity)}`
  }

  /** An entity in the spelling of requests: addresses have several spellings. */
  canonical(entity: string): string {
    return this.dimension === 'ip' ? countedAddress(entity, this.#addresses.ipv6PrefixLength) : entity
  }

  #one(name: string, request: PolicyRequest): string | undefined {
    switch (name) {
      case 'user':
        return request.user || undefined
      case 'apiKey':
        return request.apiKey || undefined
      case 'tenant':
        return request.tenant || undefined
      case 'ip':
        return request.ip ? countedAddress(request.ip, this.#addresses.ipv6PrefixLength) : undefined
      case 'service':
        return request.service || descriptorOf(request, name)
      case 'global':
        return ALL_CALLERS
      default:
        return descriptorOf(request, name)
    }
  }
}

/** One reader for each dimension. */
export class DimensionReaders {
  readonly #addresses: AddressOptions
  readonly #readers = new Map<string, DimensionReader>()

  constructor(addresses: AddressOptions) {
    this.#addresses = addresses
  }

  of(dimension: string): DimensionReader {
    let reader = this.#readers.get(dimension)
    if (reader === undefined) {
      reader = new DimensionReader(dimension, this.#addresses)
      this.#readers.set(dimension, reader)
    }
    return reader
  }
}

function descriptorOf(request: PolicyRequest, name: string): string | undefined {
  const { descriptors } = request
  if (descriptors === undefined || !Object.hasOwn(descriptors, name)) return undefined
  const value = descriptors[name]!
  return value === '' ? undefined : String(value)
}
