import { SluiceError } from '@sluice/core'
import { type Cidr, CidrTable, IpAddress, MatchCache, nearestName, parseCidr } from '@sluice/core/internal'
import type { HttpRequest } from '../http/http-request.ts'
import { ForwardedHops, type HopSyntax, MOST_HOPS, singleAddress } from './forwarded-header.ts'

/**
 * Proxies in front of this server whose forwarding header is trusted.
 *
 * - `false` or 0: none. The caller is the peer of the connection; no header is read.
 * - a number: that many proxies in a row, counted from the right of the header. Safe only if the server is reachable
 *   only through all of them.
 * - addresses, networks (`10.0.0.0/8`) and `loopback`, `private`, `linklocal`: the header is read from the right while
 *   the address to the right is one of these.
 */
export type TrustedProxies = false | number | string | readonly string[] | TrustedProxyOptions

/** Trusted proxies and their header. */
export interface TrustedProxyOptions {
  /** See {@link TrustedProxies}. */
  readonly proxies: false | number | string | readonly string[]
  /**
   * Header that the proxies write: `x-forwarded-for`, `forwarded` (RFC 7239), or any header with one address, such as
   * `cf-connecting-ip`. Other headers are ignored, because proxies pass them through. Default: `x-forwarded-for`.
   */
  readonly header?: string
}

/** Compiled {@link TrustedProxies}. */
export interface CompiledTrust {
  /** Number of trusted proxies; 0 if they are trusted by address. */
  readonly hops: number
  /** Networks of trusted proxies; undefined if they are trusted by number. */
  readonly networks: CidrTable<true> | undefined
  /** In lower case. */
  readonly header: string
  readonly syntax: HopSyntax | 'single'
  /** First network that is too wide to hold only proxies; undefined if there is none. */
  readonly tooWide: string | undefined
  /** Cache of normalized peer addresses. */
  readonly peers: MatchCache<string>
}

/** What the address of a client is read from. */
export type ForwardedRequest = Pick<HttpRequest, 'peerAddress' | 'header'>

const NAMED_NETWORKS: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1'],
  private: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
}

/** Shorter prefixes than these belong to more than one owner. */
const WIDEST_IPV4 = 8
const WIDEST_IPV6 = 7

const HEADER_NAME = /^[!#$%&'*+.^_`|~\da-z-]+$/
const NEARBY = networksOf(Object.keys(NAMED_NETWORKS)).table
const THIS_MACHINE = networksOf(['loopback']).table

const TRUST_NOT_ALL =
  'To trust every proxy is to let every caller choose its own address: say how many proxies there are, or which.'

/** Size of the cache of peers: connections stay open, so peers repeat. */
const MOST_PEERS = 4096

/** Reused by every call. */
const peer = new IpAddress()

/** Validates the `trustProxy` option. Throws `SLUICE_INVALID_OPTION`. */
export function compileTrust(trustProxy: TrustedProxies | undefined): CompiledTrust {
  const options = optionsOf(trustProxy)
  const { proxies, header = 'x-forwarded-for' } = options
  const name = typeof header === 'string' ? header.toLowerCase() : ''
  if (!HEADER_NAME.test(name)) {
    throw invalid({
      problem: '"header" of "trustProxy" cannot be used',
      received: header,
      expected: 'the name of a header, such as "x-forwarded-for"',
    })
  }
  const syntax = name === 'x-forwarded-for' || name === 'forwarded' ? name : 'single'
  const peers = new MatchCache<string>(1, MOST_PEERS)
  if (typeof proxies === 'string' || Array.isArray(proxies)) {
    const { table, tooWide } = networksOf(typeof proxies === 'string' ? [proxies] : proxies)
    return { hops: 0, networks: table, header: name, syntax, tooWide, peers }
  }
  return { hops: hopsOf(proxies), networks: undefined, header: name, syntax, tooWide: undefined, peers }
}

/**
 * Client address as reported by trusted proxies: dotted decimal for IPv4 in any notation, RFC 5952 for IPv6. Undefined
 * if the connection has no address and no trusted proxy reports one. An invalid entry ends the search at the previous
 * hop, so that a client can never choose the result.
 */
export function clientAddress(request: ForwardedRequest, trust: CompiledTrust): string | undefined {
  const { peerAddress } = request
  const found = isTrusted(peerAddress, trust) ? lastHop(request, trust) : undefined
  if (found !== undefined) return found.toString()
  return peerAddress === undefined ? undefined : canonicalPeer(peerAddress, trust.peers)
}

/** Whether the peer of the connection is a trusted proxy. */
export function isTrusted(peerAddress: string | undefined, { hops, networks }: CompiledTrust): boolean {
  if (networks === undefined) return hops > 0
  return readPeer(peerAddress) && networks.findBlock(peer) !== undefined
}

/** Number of entries in the forwarding header, invalid ones included, up to the number of trusted proxies. */
export function entriesPresent(request: HttpRequest, trust: CompiledTrust): number {
  if (trust.syntax === 'single') return request.header(trust.header) === undefined ? 0 : 1
  const hops = new ForwardedHops(request.header(trust.header), trust.syntax)
  let entries = 0
  while (entries < trust.hops && hops.next() !== undefined) entries++
  return entries
}

/** Whether an address is local or in a private network. */
export function isNearby(text: string | undefined): boolean {
  return readPeer(text) && NEARBY.findBlock(peer) !== undefined
}

/**
 * The deciding entry, if it is a private address of another machine with an entry before it: probably a proxy that is
 * not trusted. Undefined otherwise, and for loopback addresses, which are normal in development.
 */
export function untrustedHop(request: HttpRequest, trust: CompiledTrust): string | undefined {
  const { hops, networks, header, syntax } = trust
  if (syntax === 'single' || !isTrusted(request.peerAddress, trust)) return undefined
  const entries = new ForwardedHops(request.header(header), syntax)
  let trusted = 1
  let hop = entries.next()
  while (hop && (networks === undefined ? trusted < hops : networks.findBlock(hop) !== undefined)) {
    hop = entries.next()
    trusted++
  }
  if (!hop || NEARBY.findBlock(hop) === undefined || THIS_MACHINE.findBlock(hop) !== undefined) return undefined
  return entries.next() ? hop.toString() : undefined
}

/** The deciding hop. Undefined if it is the peer of the connection. */
function lastHop(request: ForwardedRequest, trust: CompiledTrust): IpAddress | undefined {
  const { hops, networks, header, syntax } = trust
  if (syntax === 'single') return singleAddress(request.header(header))
  const entries = new ForwardedHops(request.header(header), syntax)
  let last: IpAddress | undefined
  for (let hop = 0; networks !== undefined || hop < hops; hop++) {
    if (last !== undefined && networks !== undefined && networks.findBlock(last) === undefined) break
    const next = entries.next()
    if (next === undefined || next === null) break
    last = next
  }
  return last
}

function canonicalPeer(text: string, remembered: MatchCache<string>): string | undefined {
  // Dotted decimal has one spelling only.
  if (!text.includes(':')) return peer.read(text) ? text : undefined
  const known = remembered.get(0, text)
  if (known !== undefined || !readPeer(text)) return known
  const canonical = peer.toString()
  remembered.add(0, text, canonical)
  return canonical
}

/** Parses a peer address. Link-local addresses carry the interface name. */
function readPeer(text: string | undefined): boolean {
  if (text === undefined) return false
  const zone = text.indexOf('%')
  return peer.read(zone < 0 ? text : text.slice(0, zone))
}

function optionsOf(trustProxy: TrustedProxies | undefined): TrustedProxyOptions {
  if (typeof trustProxy !== 'object' || trustProxy === null || Array.isArray(trustProxy)) {
    return { proxies: (trustProxy === undefined ? false : trustProxy) as TrustedProxyOptions['proxies'] }
  }
  const options = trustProxy as TrustedProxyOptions
  for (const option of Object.keys(options)) {
    if (option === 'proxies' || option === 'header') continue
    const meant = nearestName(option, ['proxies', 'header'])
    throw invalid({
      problem: `"trustProxy" has no "${option}"`,
      expected: 'proxies and header',
      ...(meant === undefined ? {} : { action: `Did you mean "${meant}"?` }),
    })
  }
  return options
}

function hopsOf(proxies: unknown): number {
  if (proxies === false) return 0
  if (Number.isInteger(proxies) && (proxies as number) >= 0 && (proxies as number) <= MOST_HOPS)
    return proxies as number
  throw invalid({
    problem: '"trustProxy" cannot be used',
    received: proxies,
    expected: `false, a number of proxies from 0 to ${MOST_HOPS}, or their addresses and networks`,
    action: proxies === true ? TRUST_NOT_ALL : 'Say how many proxies stand before this server, or which.',
  })
}

function networksOf(list: readonly unknown[]): { table: CidrTable<true>; tooWide: string | undefined } {
  const cidrs: Cidr[] = []
  let tooWide: string | undefined
  for (const text of list) {
    const named = typeof text === 'string' && Object.hasOwn(NAMED_NETWORKS, text) ? NAMED_NETWORKS[text]! : [text]
    for (const each of named) {
      const cidr = cidrOf(each)
      const widest = cidr.address.isIpv4 ? WIDEST_IPV4 : WIDEST_IPV6
      if (cidr.length < widest) tooWide ??= each as string
      cidrs.push(cidr)
    }
  }
  return { table: new CidrTable(cidrs.map((cidr) => ({ cidr, value: true }))), tooWide }
}

function cidrOf(text: unknown): Cidr {
  const cidr = typeof text === 'string' ? parseCidr(text) : { problem: 'it is no text' }
  if (!('problem' in cidr)) return cidr
  const action = typeof text === 'string' ? entryAdvice(text) : undefined
  throw invalid({
    problem: `an entry of "trustProxy" cannot be used: ${cidr.problem}`,
    received: text,
    expected: 'an address, a network, loopback, private or linklocal',
    ...(action === undefined ? {} : { action }),
  })
}

/** Hint for an invalid entry: names of other libraries, or values from environment variables. */
function entryAdvice(text: string): string | undefined {
  if (/^\d+$/.test(text)) return `For a number of proxies, write it without quotes: trustProxy: ${Number(text)}.`
  if (text === 'false') return 'To trust no proxy, write false without quotes.'
  if (text === 'true') return TRUST_NOT_ALL
  if (text.toLowerCase() === 'uniquelocal') return 'Write "private".'
  if (text.includes(',')) return `Write a list: ${JSON.stringify(text.split(',').map((entry) => entry.trim()))}.`
  const meant = nearestName(text, Object.keys(NAMED_NETWORKS))
  return meant === undefined ? undefined : `Did you mean "${meant}"?`
}

function invalid(details: ConstructorParameters<typeof SluiceError>[1]): SluiceError {
  return new SluiceError('SLUICE_INVALID_OPTION', details)
}
