import type { Random } from '@sluice/core'
import { type ClientConnection, nodeText } from './connection.ts'

/** What happens to a header of a client. */
const PASS = 0
const REMOVE = 1
const TE = 2
const FORWARDED_FOR = 3
const FORWARDED = 4
/** Passed on from trusted proxies, else removed. */
const FROM_PROXIES = 5
const REQUEST_ID = 6
const TRACE = 7
const COOKIE = 8
const HOST_HINT = 9
const PROTO_HINT = 10

/**
 * Names in lower case. Hop-by-hop headers are for one connection only; framing is written anew; `Expect` is answered by
 * the gateway; `Host` is set from the route; what tells an upstream who calls comes from the gateway alone.
 */
const ACTIONS: readonly (readonly [string, number])[] = [
  ['connection', REMOVE],
  ['proxy-connection', REMOVE],
  ['keep-alive', REMOVE],
  ['transfer-encoding', REMOVE],
  ['content-length', REMOVE],
  ['upgrade', REMOVE],
  ['http2-settings', REMOVE],
  ['trailer', REMOVE],
  ['expect', REMOVE],
  ['proxy-authorization', REMOVE],
  ['proxy-authenticate', REMOVE],
  ['host', REMOVE],
  ['te', TE],
  ['cookie', COOKIE],
  ['x-forwarded-for', FORWARDED_FOR],
  ['forwarded', FORWARDED],
  ['x-forwarded-host', HOST_HINT],
  ['x-forwarded-proto', PROTO_HINT],
  ['x-forwarded-port', FROM_PROXIES],
  ['x-forwarded-prefix', FROM_PROXIES],
  ['x-forwarded-server', FROM_PROXIES],
  ['x-forwarded-scheme', FROM_PROXIES],
  ['x-forwarded-ssl', FROM_PROXIES],
  // Frameworks take these for the request target.
  ['x-original-url', REMOVE],
  ['x-rewrite-url', REMOVE],
  ['x-request-id', REQUEST_ID],
  ['traceparent', TRACE],
]

/** Whether the gateway reads or writes a header itself, so that it can have no other meaning. */
export function isReservedHeader(name: string): boolean {
  return RESERVED.has(name.toLowerCase())
}

const RESERVED: ReadonlySet<string> = new Set([...ACTIONS.map(([name]) => name), 'via'])

/**
 * Headers in which some proxies write the address of the client, and which upstreams may read. Proxies that do not
 * write one pass it through as a client sent it. So only the one that is believed reaches an upstream, and only from a
 * proxy.
 */
const ADDRESS_HEADERS = [
  'client-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-real-ip',
  'x-remote-ip',
  'x-remote-addr',
  'x-originating-ip',
  'x-original-forwarded-for',
  'x-envoy-external-address',
  'x-azure-clientip',
  'true-client-ip',
  'cf-connecting-ip',
  'cf-connecting-ipv6',
  'fastly-client-ip',
  'fly-client-ip',
] as const

const TRACES_AT_ONCE = 128
/** Random words of 32 bits for trace id and parent id. */
const WORDS_OF_TRACE = 6
const DIGITS_OF_TRACE_ID = 32
const DIGITS_OF_PARENT_ID = 16

/** Spellings of header names that are remembered. */
const MOST_SPELLINGS = 1024

const COLON = 0x3a

const TRAILERS = /(?:^|,)[\t ]*trailers[\t ]*(?:;|,|$)/i
const TRACE_PARENT = /^(?!ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}$/
const KNOWN_ID = /^[\w.:+/=-]{1,128}$/

/** What the headers of one request to an upstream are made of. */
export interface UpstreamRequest {
  /** Names and values in turn, as received. */
  readonly rawHeaders: readonly string[]
  readonly connection: ClientConnection
  /** Whether forwarding headers of the peer are believed. */
  readonly isTrustedPeer: boolean
  /** Of the client, as the believed header says or the connection. Undefined if unknown. */
  readonly clientAddress: string | undefined
  /** Authority of the request; undefined if it has none. */
  readonly authority: string | undefined
  /** Value of `Connection`; undefined without one. */
  readonly connectionHeader: string | undefined
  /** Of the gateway. */
  readonly requestId: string
  /** Headers about the caller. */
  readonly callerHeaders: readonly string[] | undefined
  /** Such as `1.1`. */
  readonly protocol: string
  /** Undefined if the length of the body is not announced. */
  readonly contentLength: string | undefined
}

/** Builds the headers that upstreams get. One for a gateway; remembers how header names are spelled. */
export class RequestHeaders {
  readonly #actions = new Map<string, number>()
  readonly #spellings = new Map<string, number>()
  readonly #random: Random
  /** In lower case. */
  readonly #believed: string
  /** Random hexadecimal digits for the next traces: drawn for many at once, and each used once. */
  #traceDigits = ''
  #traceDigitsUsed = 0
  /** Whether the request that is being built continues a trace. */
  #isTraced = false

  /**
   * `removed`: further headers, in lower case, that never reach an upstream. `believed`: the header in which trusted
   * proxies tell the address of the client. Default: `X-Forwarded-For`.
   */
  constructor(removed: ReadonlySet<string>, random: Random, believed = 'X-Forwarded-For') {
    this.#believed = believed.toLowerCase()
    for (const name of ADDRESS_HEADERS) this.#actions.set(name, REMOVE)
    this.#actions.set(this.#believed, FROM_PROXIES)
    for (const [name, action] of ACTIONS) this.#actions.set(name, action)
    for (const name of removed) this.#actions.set(name, REMOVE)
    this.#random = random
  }

  /** Headers of the request, names and values in turn. The first one is `Host`, whose value is still empty. */
  build(request: UpstreamRequest): string[] {
    const named = namedIn(request.connectionHeader)
    const headers = this.#passed(request, named)
    const { connection, authority, isTrustedPeer } = request
    const { peerAddress = 'unknown' } = connection
    if (!isTrustedPeer) {
      headers.push('x-forwarded-for', peerAddress, 'x-forwarded-proto', connection.scheme)
      if (authority !== undefined) headers.push('x-forwarded-host', authority)
      headers.push('forwarded', connection.forwardedElement(authority))
    } else this.#addTrusted(request, headers)
    headers.push('via', `${request.protocol} sluice`, 'x-request-id', request.requestId)
    if (request.contentLength !== undefined) headers.push('content-length', request.contentLength)
    if (!this.#isTraced) headers.push('traceparent', this.#newTrace())
    if (request.callerHeaders !== undefined) for (const text of request.callerHeaders) headers.push(text)
    return headers
  }

  /** Headers of the client that pass, without those that the gateway writes itself. */
  #passed({ rawHeaders, isTrustedPeer }: UpstreamRequest, named: ReadonlySet<string> | undefined): string[] {
    const headers: string[] = ['host', '']
    let cookieAt = -1
    this.#isTraced = false
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = rawHeaders[index]!
      const action = this.#spellings.get(name) ?? this.#learn(name)
      if (named?.has(name.toLowerCase()) === true) continue
      const value = rawHeaders[index + 1]!
      if (action === PASS) headers.push(name, value)
      else if (action === COOKIE) {
        // HTTP/2 splits cookies into several lines, which HTTP/1.1 has in one (RFC 9113, 8.2.3).
        if (cookieAt >= 0) headers[cookieAt] += `; ${value}`
        else cookieAt = headers.push(name, value) - 1
      } else if (action === TE) {
        if (TRAILERS.test(value)) headers.push('te', 'trailers')
      } else if (action === TRACE) this.#addTrace(value, headers)
      else if (action === FROM_PROXIES && isTrustedPeer) headers.push(name, value)
    }
    return headers
  }

  #addTrace(value: string, headers: string[]): void {
    if (this.#isTraced || !TRACE_PARENT.test(value)) return
    this.#isTraced = true
    headers.push('traceparent', value)
  }

  /** What proxies wrote, continued. Addresses are those of the believed header: proxies pass the other one through. */
  #addTrusted(request: UpstreamRequest, headers: string[]): void {
    const { rawHeaders, connection, authority, clientAddress } = request
    const { peerAddress = 'unknown' } = connection
    const client = clientAddress === peerAddress ? undefined : clientAddress
    const hops = this.#believed === 'x-forwarded-for' ? this.#valuesOf(rawHeaders, FORWARDED_FOR) : (client ?? '')
    headers.push('x-forwarded-for', hops === '' ? peerAddress : `${hops}, ${peerAddress}`)
    const proto = this.#valuesOf(rawHeaders, PROTO_HINT)
    headers.push('x-forwarded-proto', proto === '' ? connection.scheme : proto)
    const host = this.#valuesOf(rawHeaders, HOST_HINT)
    if (host !== '') headers.push('x-forwarded-host', host)
    else if (authority !== undefined) headers.push('x-forwarded-host', authority)
    const known = client === undefined ? '' : `for=${nodeText(client)}`
    const elements = this.#believed === 'forwarded' ? this.#valuesOf(rawHeaders, FORWARDED) : known
    const own = connection.forwardedElement(authority)
    headers.push('forwarded', elements === '' ? own : `${elements}, ${own}`)
  }

  /** Values of the headers with this action, as one list. */
  #valuesOf(rawHeaders: readonly string[], action: number): string {
    let text = ''
    for (let index = 0; index < rawHeaders.length; index += 2) {
      if (this.#spellings.get(rawHeaders[index]!) !== action && this.#actionOf(rawHeaders[index]!) !== action) continue
      text += text === '' ? rawHeaders[index + 1]! : `, ${rawHeaders[index + 1]!}`
    }
    return text
  }

  /** A trace of its own, not sampled: nothing is known about who records. */
  #newTrace(): string {
    if (this.#traceDigitsUsed === this.#traceDigits.length) {
      const words = new Uint32Array(TRACES_AT_ONCE * WORDS_OF_TRACE)
      for (let index = 0; index < words.length; index++) words[index] = this.#random.nextUint32()
      this.#traceDigits = Buffer.from(words.buffer).toString('hex')
      this.#traceDigitsUsed = 0
    }
    const start = this.#traceDigitsUsed
    const parent = start + DIGITS_OF_TRACE_ID
    const end = parent + DIGITS_OF_PARENT_ID
    this.#traceDigitsUsed = end
    return `00-${this.#traceDigits.slice(start, parent)}-${this.#traceDigits.slice(parent, end)}-00`
  }

  #actionOf(name: string): number {
    return this.#spellings.get(name) ?? this.#learn(name)
  }

  #learn(name: string): number {
    // Pseudo-headers of HTTP/2.
    if (name.charCodeAt(0) === COLON) return REMOVE
    const lower = name.toLowerCase()
    // Many servers read `_` as `-`, so that `X_Forwarded_For` would be as good as the real one.
    const action = this.#actions.get(lower) ?? this.#spoofed(lower)
    if (this.#spellings.size < MOST_SPELLINGS) this.#spellings.set(name, action)
    return action
  }

  #spoofed(lower: string): number {
    if (!lower.includes('_')) return PASS
    const action = this.#actions.get(lower.replaceAll('_', '-'))
    return action === undefined || action === PASS || action === COOKIE ? PASS : REMOVE
  }
}

/** Names that `Connection` declares as meant for this connection only. Undefined if there are none, the usual case. */
function namedIn(connectionHeader: string | undefined): ReadonlySet<string> | undefined {
  if (connectionHeader === undefined) return undefined
  const text = connectionHeader.toLowerCase()
  if (text === 'keep-alive' || text === 'close') return undefined
  return new Set(text.split(',').map((token) => token.trim()))
}

/** The request id that a trusted proxy gave; undefined without a usable one. */
export function knownRequestId(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' && KNOWN_ID.test(value) ? value : undefined
}
