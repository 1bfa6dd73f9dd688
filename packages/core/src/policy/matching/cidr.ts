import { IpAddress, parseIp } from './ip-address.ts'

const IPV4_BITS = 32
const IPV6_BITS = 128
/** The bits before an IPv4 address that is written as an IPv6 one. */
const MAPPED_BITS = 96

const PREFIX_LENGTH = /^(?:0|[1-9]\d{0,2})$/

/** A block of addresses: those that begin with the same bits. A block of IPv6 addresses holds no IPv4 address. */
export interface Cidr {
  /** The first one of the block; bits after the prefix are 0. */
  readonly address: IpAddress
  /** How many bits are the same: 0 to 32 for IPv4, 0 to 128 for IPv6. */
  readonly length: number
}

/** Why a text is no block of addresses: a sentence without a full stop that says what to write instead. */
export interface CidrProblem {
  readonly problem: string
}

/**
 * The block that a text such as `10.0.0.0/8`, `2001:db8::/32` or a single address stands for; `::ffff:10.0.0.0/104` is the
 * first of these. Bits after the prefix must not be set: the writer may have meant the address or the block.
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
