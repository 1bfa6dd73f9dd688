import { type Cidr, CidrTable, IpAddress, METADATA_NETWORKS, parseCidr } from '@sluice/core/internal'

/** The first word of 2002::/16, whose addresses hold an IPv4 address in the bits after it (6to4). */
const SIX_TO_FOUR = 0x20_02
/** The first word of 64:ff9b::/96, whose addresses hold an IPv4 address in their last bits (NAT64). */
const NAT64 = 0x00_64_ff_9b
const HALF_WORD_BITS = 16

/** A connection was not opened, because its address is link-local or a metadata service. */
export class DeniedAddressError extends Error {
  override readonly name = 'DeniedAddressError'
  readonly code = 'SLUICE_GATEWAY_DENIED_ADDRESS'

  constructor(host: string, addresses: readonly string[]) {
    super(
      `${host} is at ${addresses.join(', ')}, which is link-local or a metadata service. ` +
        'Correct the URL, or name the address in allowAddresses of the upstream.',
    )
  }
}

/**
 * Which addresses an upstream may connect to: all but link-local ones and metadata services, which hand out
 * credentials. Private addresses are allowed, because upstreams come from the configuration and never from a request.
 */
export class AddressGuard {
  readonly #denied: CidrTable<true>
  readonly #allowed: CidrTable<true>

  /** `allowed`: addresses and networks that are allowed all the same. */
  constructor(allowed: readonly string[] = []) {
    this.#denied = tableOf(METADATA_NETWORKS)
    this.#allowed = tableOf(allowed)
  }

  /** Whether a connection may go to an address. What is no address is not allowed. */
  allows(text: string): boolean {
    const address = new IpAddress()
    // A link-local address may have a zone index.
    if (!address.read(text.replace(/%.*$/, ''))) return false
    const inner = innerIpv4(address)
    return this.#allowsOne(address) && (inner === undefined || this.#allowsOne(inner))
  }

  #allowsOne(address: IpAddress): boolean {
    return this.#denied.findBlock(address) === undefined || this.#allowed.findBlock(address) !== undefined
  }
}

function tableOf(networks: readonly string[]): CidrTable<true> {
  return new CidrTable(
    networks.map((text) => {
      const cidr = parseCidr(text)
      if ('problem' in cidr) throw new RangeError(`"${text}" cannot be used as an address or network: ${cidr.problem}.`)
      return { cidr: cidr satisfies Cidr, value: true }
    }),
  )
}

/** The IPv4 address that a translating network reaches through an IPv6 address. `IpAddress` knows the mapped form. */
function innerIpv4({ isIpv4, word0, word1, word2, word3 }: IpAddress): IpAddress | undefined {
  if (isIpv4) return undefined
  const inner = new IpAddress()
  if (word0 >>> HALF_WORD_BITS === SIX_TO_FOUR) inner.word3 = (word0 << HALF_WORD_BITS) | (word1 >>> HALF_WORD_BITS)
  else if (word1 === 0 && word2 === 0 && (word0 === NAT64 || word0 === 0)) inner.word3 = word3
  else return undefined
  return inner
}
