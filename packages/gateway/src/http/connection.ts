import type { Socket } from 'node:net'
import { type Cidr, CidrTable, IpAddress, parseCidr } from '@sluice/core/internal'

/** Holds the {@link ClientConnection} of a socket. */
export const CONNECTION: unique symbol = Symbol('sluice.connection')

/** A socket of a client. */
export interface ClientSocket extends Socket {
  [CONNECTION]?: ClientConnection
}

/** Reused by every call. */
const address = new IpAddress()

/** Peers whose forwarding headers are believed. */
export class TrustedPeers {
  readonly #networks: CidrTable<true>
  readonly #isEmpty: boolean

  /** Entries that are no networks are ignored. */
  constructor(networks: readonly string[]) {
    const cidrs = networks.map((text) => parseCidr(text)).filter((cidr): cidr is Cidr => !('problem' in cidr))
    this.#networks = new CidrTable(cidrs.map((cidr) => ({ cidr, value: true })))
    this.#isEmpty = cidrs.length === 0
  }

  /** Whether this address is one of them. */
  has(text: string | undefined): boolean {
    if (this.#isEmpty || text === undefined) return false
    const zone = text.indexOf('%')
    return address.read(zone < 0 ? text : text.slice(0, zone)) && this.#networks.findBlock(address) !== undefined
  }
}

/** What all requests of one connection have in common. */
export class ClientConnection {
  /** Address of the client: of the socket, or as the PROXY protocol says. */
  readonly peerAddress: string | undefined
  readonly scheme: 'http' | 'https'
  /** Requests that were not answered yet. */
  inFlight = 0
  /** The address as `Forwarded` writes it. */
  readonly #forwardedFor: string
  #trust: TrustedPeers | undefined
  #isTrusted = false
  #host: string | undefined
  #forwarded = ''

  constructor(peerAddress: string | undefined, isTls: boolean) {
    this.peerAddress = peerAddress === undefined ? undefined : unmapped(peerAddress)
    this.scheme = isTls ? 'https' : 'http'
    this.#forwardedFor = nodeText(this.peerAddress)
  }

  /** Whether forwarding headers of this peer are believed. The answer is kept until the configuration changes. */
  isTrustedBy(trust: TrustedPeers): boolean {
    if (trust !== this.#trust) {
      this.#trust = trust
      this.#isTrusted = trust.has(this.peerAddress)
    }
    return this.#isTrusted
  }

  /** Element of `Forwarded` (RFC 7239) for a request to `authority`. The text is kept for the next request. */
  forwardedElement(authority: string | undefined): string {
    if (authority !== this.#host || this.#forwarded === '') {
      this.#host = authority
      const host = authority === undefined ? '' : `host="${authority}";`
      this.#forwarded = `for=${this.#forwardedFor};${host}proto=${this.scheme}`
    }
    return this.#forwarded
  }
}

/** The connection of a socket; made when it is first asked for. */
export function connectionOf(socket: ClientSocket): ClientConnection {
  socket[CONNECTION] ??= new ClientConnection(socket.remoteAddress, 'encrypted' in socket)
  return socket[CONNECTION]
}

/** An IPv4 address that a dual-stack socket reports as IPv6, as IPv4. */
function unmapped(text: string): string {
  return text.startsWith('::ffff:') && text.includes('.') ? text.slice('::ffff:'.length) : text
}

/** An address as `Forwarded` writes it (RFC 7239). */
export function nodeText(peerAddress: string | undefined): string {
  if (peerAddress === undefined) return 'unknown'
  return peerAddress.includes(':') ? `"[${peerAddress}]"` : peerAddress
}
