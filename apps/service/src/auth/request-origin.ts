import type { IncomingHttpHeaders } from 'node:http'
import type { Cidr } from '@sluice/core/internal'
import { CidrTable, parseCidr, parseIp } from '@sluice/core/internal'

/** The parts of a request that identify its origin. */
export interface RequestOrigin {
  readonly headers: IncomingHttpHeaders
  /** Remote address of the connection. */
  readonly remoteAddress: string
}

/** How a client reached the service. */
export interface RequestTarget {
  /** Whether over TLS, as far as is known. */
  readonly isSecure: boolean
  /** Host and port; undefined without a `Host` header. */
  readonly host: string | undefined
  /** Path below which a proxy serves the service, without a trailing slash; undefined if it does not send one. */
  readonly prefix: string | undefined
}

/** A path that is valid in a cookie: segments of plain characters, none of them `.` or `..`. */
const PATH = /^(?:\/(?!\.{1,2}(?:\/|$))[\w.~-]+)+$/

/** Maximum number of entries read from `X-Forwarded-For`. */
const MOST_HOPS = 32

/** An address with a port, as some proxies write it. */
const WITH_PORT = /^(?:\[([^\]]+)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+)$/

/** Finds the address of the client behind trusted proxies. */
export class ClientAddresses {
  readonly #trusted: CidrTable<true>
  readonly #isTls: boolean

  /** `trustedProxies`: valid networks and addresses. `isTls`: whether the HTTP listeners speak TLS. */
  constructor(trustedProxies: readonly string[], isTls = false) {
    this.#isTls = isTls
    this.#trusted = new CidrTable(trustedProxies.map((text) => ({ cidr: parseCidr(text) as Cidr, value: true })))
  }

  /**
   * The address of the connection or, if that is a trusted proxy, the last one in `X-Forwarded-For` that is not. An
   * entry that is not an address ends the search at the hop before it: the client may have written it.
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

  /**
   * How the client reached the service: according to `X-Forwarded-Proto`, `X-Forwarded-Host` and `X-Forwarded-Prefix`
   * of a trusted proxy, else according to the connection.
   */
  target({ headers, remoteAddress }: RequestOrigin): RequestTarget {
    const forwarded = this.#isTrusted(remoteAddress) ? headers : {}
    const prefix = firstOf(forwarded['x-forwarded-prefix'])?.replace(/\/+$/, '')
    const protocol = firstOf(forwarded['x-forwarded-proto'])?.toLowerCase()
    return {
      isSecure: protocol === undefined ? this.#isTls : protocol === 'https',
      host: firstOf(forwarded['x-forwarded-host']) ?? headers.host,
      prefix: prefix !== undefined && PATH.test(prefix) ? prefix : undefined,
    }
  }

  #isTrusted(address: string): boolean {
    const parsed = parseIp(address)
    return parsed !== undefined && this.#trusted.find(parsed).length > 0
  }
}

/** The entry of the proxy nearest to the client. */
function firstOf(header: string | readonly string[] | undefined): string | undefined {
  const first = typeof header === 'string' ? header.split(',')[0]?.trim() : undefined
  return first === '' ? undefined : first
}
