import { SluiceError } from '../../errors.ts'
import type { Cidr } from '../matching/cidr.ts'
import { CidrTable, parseCidr } from '../matching/cidr.ts'
import { IpAddress } from '../matching/ip-address.ts'

/** A proxy on the same machine, or the machine itself: blocking it would block all callers behind it. */
const LOOPBACK = ['127.0.0.0/8', '::1']

/** Addresses that no penalty blocks: loopback addresses and given networks. */
export class UnblockedAddresses {
  readonly #table: CidrTable<boolean>
  readonly #address = new IpAddress()

  /**
   * `networks` are addresses or CIDR blocks. Callers are counted by the first `ipv6PrefixLength` bits of an IPv6
   * address, so a narrower network covers all addresses that are counted together with it.
   */
  constructor(networks: readonly string[], ipv6PrefixLength: number) {
    const cidrs = [...LOOPBACK, ...networks].map((network) => widened(cidrOf(network), ipv6PrefixLength))
    this.#table = new CidrTable(cidrs.map((cidr) => ({ cidr, value: true })))
  }

  /** False for what is no address. */
  has(ip: string): boolean {
    return this.#address.read(ip) && this.#table.findBlock(this.#address) !== undefined
  }
}

function cidrOf(network: string): Cidr {
  const cidr = parseCidr(network)
  if (!('problem' in cidr)) return cidr
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: '"neverBlock" has a network that cannot be used',
    received: network,
    expected: `networks such as "10.0.0.0/8" or "fd00::/8", but ${cidr.problem}`,
  })
}

function widened(cidr: Cidr, ipv6PrefixLength: number): Cidr {
  const { address, length } = cidr
  if (address.isIpv4 || length <= ipv6PrefixLength) return cidr
  const first = new IpAddress()
  first.read(address.toString())
  first.mask(ipv6PrefixLength)
  return { address: first, length: ipv6PrefixLength }
}
