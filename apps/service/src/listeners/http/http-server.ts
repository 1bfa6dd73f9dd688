import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { createServer as createTcpServer } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Cidr } from '@sluice/core/internal'
import { CidrTable, parseCidr, parseIp } from '@sluice/core/internal'
import type { Sleep } from '@sluice/runtime'
import { addressNetwork } from '../../address-network.ts'
import type { Answer } from '../../operations/handler.ts'
import { NO_SNIFF } from '../../operations/handler.ts'
import { problemAnswer } from '../../operations/problems.ts'
import { ServiceError } from '../../service-error.ts'
import { discardBody } from './request-body.ts'
import type { RequestServer } from './request-server.ts'
import { writeAnswer } from './request-server.ts'

/** How long a client may take; each in milliseconds. */
export interface HttpTimeouts {
  /** From the beginning of a request to the end of its headers. */
  readonly headersMs: number
  /** From the beginning of a request to the end of its body. */
  readonly requestMs: number
  /** Between two requests on one connection. */
  readonly idleMs: number
  /** How often the two for requests are looked after: a request may take so much longer. */
  readonly checkEveryMs: number
}

/** Options of {@link HttpServer}. */
export interface HttpServerOptions extends ListenAddress {
  /** Answers the requests that this server brings. */
  readonly requests: Pick<RequestServer, 'serve' | 'leave' | 'endStreams'>
  /** Told of every answer to what could not be made a request of. */
  readonly observeRejection?: (status: number, remoteAddress: string) => void
  /** Told of failures that no client is at fault for. */
  readonly reportError: (error: unknown) => void
  readonly timeouts: HttpTimeouts
  readonly sleep: Sleep
  /** How long a stop waits for requests that have begun, in milliseconds; then their connections are cut. */
  readonly graceMs: number
  readonly connectionLimit: ConnectionLimit
  /** Whether other threads listen on the same port, each with a share of the connections. */
  readonly sharesPort?: boolean
}

const UNKNOWN_EXPECTATION = problemAnswer('SLUICE_HTTP_EXPECTATION_FAILED', {
  detail: 'The only expectation known is "100-continue". Leave the Expect header out.',
})

/**
 * An HTTP/1.1 server: listens, brings requests to be answered, and stops without breaking off what it has begun. It runs once:
 * new -> listening -> draining -> stopping -> stopped.
 */
export class HttpServer {
  readonly #options: HttpServerOptions
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #stopping = new AbortController()

  constructor(options: HttpServerOptions) {
    this.#options = options
    const { headersMs, requestMs, idleMs, checkEveryMs } = options.timeouts
    this.#server = createServer({
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      keepAliveTimeout: idleMs,
      connectionsCheckingInterval: checkEveryMs,
      // A missing Host header is rejected here and not by Node, so that it is a problem document like all others.
      requireHostHeader: false,
    })
    const { requests, observeRejection, connectionLimit } = options
    this.#server.on('request', (request, response) => requests.serve(request, response))
    this.#server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
      observeRejection?.(UNKNOWN_EXPECTATION.status, request.socket.remoteAddress ?? '')
      discardBody(request)
      writeAnswer(response, UNKNOWN_EXPECTATION)
    })
    this.#server.on('clientError', (error, socket) => {
      const remoteAddress = 'remoteAddress' in socket ? String(socket.remoteAddress) : ''
      const status = answerClientError(error, socket)
      if (status !== undefined) observeRejection?.(status, remoteAddress)
    })
    this.#server.on('connection', (socket) => {
      const remoteAddress = socket.remoteAddress ?? ''
      const closed = connectionLimit.open(remoteAddress)
      if (closed === undefined) {
        observeRejection?.(rejectConnection(socket), remoteAddress)
        return
      }
      this.#sockets.add(socket)
      socket.once('close', () => {
        closed()
        this.#sockets.delete(socket)
      })
    })
  }

  /** The port it listens on; with port 0 in the options, the one that was found. Undefined unless it is listening. */
  get port(): number | undefined {
    const address = this.#server.address()
    return address === null || typeof address === 'string' ? undefined : address.port
  }

  /** Connections that are open. */
  get connections(): number {
    return this.#sockets.size
  }

  /** Resolves when requests are accepted; rejects with a `SLUICE_SERVICE_*` error when they cannot be. */
  start(): Promise<void> {
    const { host, port, sharesPort = false } = this.#options
    return new Promise((resolve, reject) => {
      const onError = (error: NodeJS.ErrnoException): void => reject(listenError(error, { host, port }))
      this.#server.once('error', onError)
      this.#server.listen({ host, port, reusePort: sharesPort }, () => {
        this.#server.off('error', onError)
        // Such as no file descriptors left for another connection: the server goes on with those it has.
        this.#server.on('error', this.#options.reportError)
        resolve()
      })
    })
  }

  /**
   * Lets clients move to other nodes: requests are answered as before, and each connection closes after its answer.
   * Resolves after `drainMs`, or at once when the server does not listen or is stopped. It does not resolve early without
   * connections: a client that has not noticed the drain yet may open another.
   */
  async drain(drainMs: number): Promise<void> {
    const { requests, sleep } = this.#options
    requests.leave()
    if (drainMs > 0 && this.#server.listening) await sleep(drainMs, this.#stopping.signal).catch(() => undefined)
  }

  /**
   * Accepts nothing more, answers what has begun, closes what is idle; resolves when no connection is left. Connections
   * that are not done after `graceMs` are cut.
   */
  async stop(): Promise<void> {
    const { requests, sleep, graceMs } = this.#options
    this.#stopping.abort()
    requests.leave()
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    requests.endStreams()
    // Node closes connections between requests; one that never began a request it would wait for.
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy()
    const done = new AbortController()
    const graceOver = sleep(graceMs, done.signal).then(
      () => this.#server.closeAllConnections(),
      () => undefined,
    )
    await closed
    done.abort()
    await graceOver
  }
}

const MALFORMED = problemAnswer('SLUICE_HTTP_MALFORMED', {
  detail: 'The bytes received are not an HTTP/1.1 request. Send one.',
})
const TIMEOUT = problemAnswer('SLUICE_HTTP_TIMEOUT', {
  detail: 'The request was not complete in time. Send it without pauses.',
})
const HEADERS_TOO_LARGE = problemAnswer('SLUICE_HTTP_HEADERS_TOO_LARGE', {
  detail: 'The headers are longer than is read. Send fewer.',
})

const TOO_MANY_CONNECTIONS = problemAnswer('SLUICE_HTTP_TOO_MANY_CONNECTIONS', {
  detail:
    'Too many connections from this address are open. Keep connections alive and reuse them; --max-connections-per-address and --trusted-proxies of the service raise the limit.',
  headers: { 'Retry-After': '1' },
})

/** Answers a connection that is one too many before it has sent anything, and closes it. Returns the status of the answer. */
function rejectConnection(socket: Duplex): number {
  // Not `end`: what the client sends meanwhile must not become a request.
  socket.write(rawAnswer(TOO_MANY_CONNECTIONS), () => socket.destroy())
  return TOO_MANY_CONNECTIONS.status
}

/**
 * Answers bytes that Node could not parse as a request, and closes the connection: the start of the next request is
 * unknown. Returns the status of the answer, or undefined when the client is gone.
 */
function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): number | undefined {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return undefined
  }
  const answer = answerFor(error.code)
  socket.end(rawAnswer(answer), () => socket.destroy())
  return answer.status
}

function answerFor(code: string | undefined): Answer {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return TIMEOUT
  return code === 'HPE_HEADER_OVERFLOW' ? HEADERS_TOO_LARGE : MALFORMED
}

/** The bytes of an answer, for a connection that has no response object. */
function rawAnswer({ status, headers, body }: Answer): string {
  const lines = Object.entries({ ...headers, ...NO_SNIFF, Connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`
}

/** Options of {@link ConnectionLimit}. */
export interface ConnectionLimitOptions {
  /** Maximum number of open connections from one address. */
  readonly perAddress: number
  /** Networks without a limit, as CIDR or single address: proxies that connect for many clients. */
  readonly exempt: readonly string[]
}

/** This machine. Its own proxies and programs come from here. */
export const LOOPBACK_NETWORKS: readonly string[] = ['127.0.0.0/8', '::1']

/** Bounds the open connections of one address, which for IPv6 is a network of 64 bits. */
export class ConnectionLimit {
  readonly #perAddress: number
  readonly #exempt: CidrTable<true>
  readonly #open = new Map<string, number>()

  constructor({ perAddress, exempt }: ConnectionLimitOptions) {
    this.#perAddress = perAddress
    // The settings were checked when they were read.
    this.#exempt = new CidrTable(exempt.map((text) => ({ cidr: parseCidr(text) as Cidr, value: true })))
  }

  /**
   * Counts a connection from `address`. Returns what must be called when it is closed; undefined when there are too many, and
   * this one must be closed.
   */
  open(address: string): (() => void) | undefined {
    const parsed = parseIp(address)
    if (parsed !== undefined && this.#exempt.find(parsed).length > 0) return () => undefined
    const network = addressNetwork(address)
    const count = this.#open.get(network) ?? 0
    if (count >= this.#perAddress) return undefined
    this.#open.set(network, count + 1)
    return () => {
      const left = (this.#open.get(network) ?? 0) - 1
      if (left > 0) this.#open.set(network, left)
      else this.#open.delete(network)
    }
  }
}

/** Where a server was told to listen. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
}

const HIGHEST_PORT = 65_535

/** Says in the words of the settings why a server could not listen. */
export function listenError(cause: NodeJS.ErrnoException, { host, port }: ListenAddress): ServiceError {
  const received = `port ${port} on ${host}`
  switch (cause.code) {
    case 'EADDRINUSE':
      return new ServiceError('SLUICE_SERVICE_PORT_IN_USE', {
        received: `${received}, which something else listens on`,
        expected: 'a free port',
        action: `Stop the other program, or choose another port: PORT=${port < HIGHEST_PORT ? port + 1 : 8080}`,
        cause,
      })
    case 'EACCES':
      return new ServiceError('SLUICE_SERVICE_PORT_FORBIDDEN', {
        received,
        expected: 'a port that this user may use, which below 1024 is often only root',
        action: 'Choose a higher port: PORT=8080',
        cause,
      })
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new ServiceError('SLUICE_SERVICE_HOST_UNAVAILABLE', {
        received: `HOST=${host}`,
        expected: 'an address of this machine',
        action: 'Use HOST=127.0.0.1 for this machine only, or HOST=0.0.0.0 for all its addresses.',
        cause,
      })
    default:
      return new ServiceError('SLUICE_SERVICE_LISTEN_FAILED', {
        received: `${cause.message} for ${received}`,
        expected: 'to be able to listen there',
        action: 'See the cause; HOST and PORT choose another place.',
        cause,
      })
  }
}

/** Rejects with {@link listenError} when the address cannot be listened on. The port is free again when it resolves. */
export function assertPortFree({ host, port }: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    const probe = createTcpServer()
    probe.once('error', (error) => reject(listenError(error, { host, port })))
    probe.listen({ host, port }, () => probe.close(() => resolve()))
  })
}
