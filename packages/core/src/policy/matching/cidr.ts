import { IpAddress, parseIp, wordMask } from './ip-address.ts'

const IPV4_BITS = 32
const IPV6_BITS = 128
/** The first 96 bits of an IPv4-mapped IPv6 address. */
const MAPPED_BITS = 96

const PREFIX_LENGTH = /^(?:0|[1-9]\d{0,2})$/

/** A block of addresses with a common prefix. A block of IPv6 addresses contains no IPv4 address. */
export interface Cidr {
  /** The first address of the block; bits after the prefix are 0. */
  readonly address: IpAddress
  /** Length of the prefix: 0 to 32 for IPv4, 0 to 128 for IPv6. */
  readonly length: number
}

/**
 * Link-local addresses and the metadata services of clouds, which hand out credentials. Requests to them must be
 * allowed explicitly.
 */
export const METADATA_NETWORKS: readonly string[] = [
  '169.254.0.0/16',
  'fe80::/10',
  '100.100.100.200',
  'fd00:ec2::254',
  'fd20:ce::254',
]

/** Why a string is not a CIDR block: a sentence without a full stop that says what to write instead. */
export interface CidrProblem {
  readonly problem: string
}

/**
 * Parses a CIDR block such as `10.0.0.0/8` or `2001:db8::/32`, or a single address. `::ffff:10.0.0.0/104` equals
 * `10.0.0.0/8`. Bits after the prefix must not be set: either the address or the block could be meant.
 */
export function parseCidr(text: string): Cidr | CidrProblem {
  const slash = text.indexOf('/')
  const written = slash < 0 ? text : text.slice(0, slash)
  const address = parseIp(written)
  if (address === undefined) {
    return { problem: 'it is no IP address; write one, or a block such as 10.0.0.0/8 or 2001:db8::/32' }
  }
  const bits = address.isIpv4 ? IPV4_BITS : IPV6_BITS
  if (slash < 0) return { address, length: bits }
  const isMapped = address.isIpv4 && text.includes(':')
  const least = isMapped ? MAPPED_BITS : 0
  const prefix = text.slice(slash + 1)
  const length = PREFIX_LENGTH.test(prefix) ? Number(prefix) - least : Number.NaN
  if (!(length >= 0 && length <= bits)) {
    return { problem: `"${prefix}" is no length of a prefix; write ${least} to ${least + bits} after the slash` }
  }
  const first = new IpAddress()
  first.read(written)
  first.mask(length)
  if (first.equals(address)) return { address, length }
  const reason = `it has bits set after the first ${length}`
  return { problem: `${reason}; write ${first}/${length} for the block, or ${address} for the address` }
}

// One slot of 32-bit words: the address (4 words), the code of its prefix (0: the slot is empty), the index of its
// block.
const SLOT_WORDS = 6
const CODE = 4
const NUMBER = 5
const MOST_LOAD = 0.5
/** Codes of IPv4 prefixes start at 1, those of IPv6 prefixes here. */
const IPV6_CODES = 64

/** A prefix length of IPv4 or IPv6, and its mask. */
class Prefix {
  readonly isIpv4: boolean
  readonly length: number
  readonly code: number
  readonly mask0: number
  readonly mask1: number
  readonly mask2: number
  readonly mask3: number

  constructor(isIpv4: boolean, length: number) {
    this.isIpv4 = isIpv4
    this.length = length
    this.code = isIpv4 ? 1 + length : IPV6_CODES + length
    this.mask0 = isIpv4 ? 0 : wordMask(length)
    this.mask1 = isIpv4 ? 0 : wordMask(length - 32)
    this.mask2 = isIpv4 ? 0 : wordMask(length - 64)
    this.mask3 = wordMask(isIpv4 ? length : length - 96)
  }
}

/** A block of a table with its values. */
export class CidrBlock<T> {
  readonly cidr: Cidr
  values: T[] = []
  /** The next wider block of the table that contains this one. */
  wider: CidrBlock<T> | undefined = undefined

  constructor(cidr: Cidr) {
    this.cidr = cidr
  }
}

/**
 * Values by address block. Built once. The cost of a lookup depends on the number of different prefix lengths, not on
 * the number of blocks.
 */
export class CidrTable<T> {
  readonly #blocks: CidrBlock<T>[] = []
  /** Prefixes in use, longest first. */
  readonly #ipv4: readonly Prefix[]
  readonly #ipv6: readonly Prefix[]
  readonly #words: Int32Array
  readonly #mask: number

  constructor(entries: readonly { readonly cidr: Cidr; readonly value: T }[]) {
    this.#ipv4 = prefixesOf(entries, true)
    this.#ipv6 = prefixesOf(entries, false)
    let slots = 1
    while (entries.length > slots * MOST_LOAD) slots *= 2
    this.#words = new Int32Array(slots * SLOT_WORDS)
    this.#mask = slots - 1
    for (const { cidr, value } of entries) this.#add(cidr, value)
    for (const block of this.#blocks) {
      if (block.values.length > 1) block.values = [...new Set(block.values)]
      block.wider = this.#search(block.cidr.address, block.cidr.length - 1)
    }
  }

  get isEmpty(): boolean {
    return this.#blocks.length === 0
  }

  /** The values of all blocks that contain an address, without duplicates, narrowest block first. */
  find(address: IpAddress): readonly T[] {
    const block = this.findBlock(address)
    if (block === undefined) return []
    if (block.wider === undefined) return block.values
    const values = new Set<T>()
    for (let each: CidrBlock<T> | undefined = block; each !== undefined; each = each.wider) {
      for (const value of each.values) values.add(value)
    }
    return [...values]
  }

  /** The narrowest block that contains an address; the others follow by `wider`. Does not allocate. */
  findBlock(address: IpAddress): CidrBlock<T> | undefined {
    return this.#search(address, Number.POSITIVE_INFINITY)
  }

  #add(cidr: Cidr, value: T): void {
    const { address, length } = cidr
    const prefix = new Prefix(address.isIpv4, length)
    const words = this.#words
    const at = this.#slotOf(prefix, address)
    if (words[at + CODE] === 0) {
      words[at] = address.word0
      words[at + 1] = address.word1
      words[at + 2] = address.word2
      words[at + 3] = address.word3
      words[at + CODE] = prefix.code
      words[at + NUMBER] = this.#blocks.length
      this.#blocks.push(new CidrBlock(cidr))
    }
    this.#blocks[words[at + NUMBER]!]!.values.push(value)
  }

  /** The narrowest block that contains an address and whose prefix has at most that length. */
  #search(address: IpAddress, mostLength: number): CidrBlock<T> | undefined {
    const prefixes = address.isIpv4 ? this.#ipv4 : this.#ipv6
    for (let index = 0; index < prefixes.length; index++) {
      const prefix = prefixes[index]!
      if (prefix.length > mostLength) continue
      const at = this.#slotOf(prefix, address)
      if (this.#words[at + CODE] !== 0) return this.#blocks[this.#words[at + NUMBER]!]!
    }
    return undefined
  }

  /** Position of the first word of the block that contains an address, or of the empty slot for it. */
  #slotOf(prefix: Prefix, address: IpAddress): number {
    const words = this.#words
    const { code } = prefix
    const word0 = address.word0 & prefix.mask0
    const word1 = address.word1 & prefix.mask1
    const word2 = address.word2 & prefix.mask2
    const word3 = address.word3 & prefix.mask3
    let hash = Math.imul(word0 ^ code, 0x9e_37_79_b1)
    hash = Math.imul(hash ^ (hash >>> 15) ^ word1, 0x85_eb_ca_77)
    hash = Math.imul(hash ^ (hash >>> 13) ^ word2, 0xc2_b2_ae_3d)
    hash = Math.imul(hash ^ (hash >>> 16) ^ word3, 0x27_d4_eb_2f)
    let slot = (hash ^ (hash >>> 15)) & this.#mask
    for (;;) {
      const at = slot * SLOT_WORDS
      if (words[at + CODE] === 0) return at
      if (
        words[at + 3] === word3 &&
        words[at + CODE] === code &&
        words[at + 2] === word2 &&
        words[at + 1] === word1 &&
        words[at] === word0
      ) {
        return at
      }
      slot = (slot + 1) & this.#mask
    }
  }
}

function prefixesOf(entries: readonly { readonly cidr: Cidr }[], isIpv4: boolean): readonly Prefix[] {
  const lengths = new Set<number>()
  for (const { cidr } of entries) if (cidr.address.isIpv4 === isIpv4) lengths.add(cidr.length)
  return [...lengths].sort((one, other) => other - one).map((length) => new Prefix(isIpv4, length))
}
