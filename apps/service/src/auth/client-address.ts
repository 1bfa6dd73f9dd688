import type { IncomingHttpHeaders } from 'node:http'
import type { Cidr } from '@sluice/core/internal'
import { CidrTable, parseCidr, parseIp } from '@sluice/core/internal'

/** The parts of a request that say where it comes from. */
export interface RequestOrigin {
  readonly headers: IncomingHttpHeaders
  /** Address of the other end of the connection. */
  readonly remoteAddress: string
}

/** Maximum number of entries of `X-Forwarded-For` that are read. */
const MOST_HOPS = 32

/** An address with a port, as some proxies write it. */
const WITH_PORT = /^(?:\[([^\]]+)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+)$/

/** Finds the address of the client behind trusted proxies. */
export class ClientAddresses {
  readonly #trusted: CidrTable<true>

  /** `trustedProxies`: valid networks and addresses. */
  constructor(trustedProxies: readonly string[]) {
    this.#trusted = new CidrTable(trustedProxies.map((text) => ({ cidr: parseCidr(text) as Cidr, value: true })))
  }

  /**
   * The address of the connection, or, if that is a trusted proxy, the last one in `X-Forwarded-For` that is not. An
   * entry that is no address ends the search at the hop before it: what stands there may be written by the client.
   */
  of({ headers, remoteAddress }: RequestOrigin): string {
    const forwarded = headers['x-forwarded-for']
    if (typeof forwarded !== 'string' || !this.#isTrusted(remoteAddress)) return remoteAddress
    const hops = forwarded.split(',').slice(-MOST_HOPS).reverse()
    let address = remoteAddress
    for (const hop of hops) {
      const text = hop.trim()
      const [, ipv6, ipv4] = WITH_PORT.exec(text) ?? []
      const next = ipv6 ?? ipv4 ?? text
      if (parseIp(next) === undefined) return address
      address = next
      if (!this.#isTrusted(next)) return address
    }
    return address
  }

  #isTrusted(address: string): boolean {
    const parsed = parseIp(address)
    return parsed !== undefined && this.#trusted.find(parsed).length > 0
  }
}
