import { isIP, type LookupFunction, type Socket } from 'node:net'
import { buildConnector, Client, type Dispatcher, Pool } from 'undici'
import { type AddressGuard, DeniedAddressError } from './address-guard.ts'
import { ConnectionPool } from './connection-pool.ts'

/** How connections to the instances of an upstream are opened. */
export interface ConnectionOptions {
  readonly protocol: 'http1' | 'http2'
  /** Connections to each instance. */
  readonly connections: number
  readonly connectTimeoutMs: number
  readonly guard: AddressGuard
  /** Contents of files, in PEM form. */
  readonly tls: {
    readonly ca?: string | undefined
    readonly cert?: string | undefined
    readonly key?: string | undefined
    readonly serverName?: string | undefined
  }
}

/** An address in the form that `net.connect` expects of a lookup. */
interface LookedUpAddress {
  readonly address: string
  readonly family: number
}

/**
 * The name by which undici compares requests of one connection. Without one it takes the `Host` of the request: it
 * would verify the certificate of the upstream by what a client sent, and close a connection whenever that changes.
 */
const ONE_NAME = 'upstream'

/** Connections whose TLS name does not depend on requests. */
class SecureConnectionPool extends ConnectionPool {
  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    return super.dispatch({ ...options, servername: ONE_NAME } as Dispatcher.DispatchOptions, handler)
  }
}

/** The same for HTTP/2, where one connection has many requests. */
class SecurePool extends Pool {
  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    return super.dispatch({ ...options, servername: ONE_NAME } as Dispatcher.DispatchOptions, handler)
  }
}

/**
 * Connections to the addresses of one instance.
 *
 * Invariant: the address that is connected to is one that the guard has allowed in the same step. The name is not
 * resolved again in between, and redirects are not followed.
 */
export class InstanceConnection {
  readonly dispatcher: ConnectionPool | Pool
  readonly #url: URL
  readonly #addresses: readonly string[]
  readonly #options: ConnectionOptions
  #checkClient: Client | undefined
  #closing: Promise<unknown> | undefined

  constructor(url: URL, addresses: readonly string[], options: ConnectionOptions) {
    this.#url = url
    this.#addresses = addresses
    this.#options = options
    const isSecure = url.protocol === 'https:'
    const poolOptions = { ...this.#clientOptions(), connections: options.connections }
    if (options.protocol === 'http2') this.dispatcher = new (isSecure ? SecurePool : Pool)(url, poolOptions)
    else this.dispatcher = new (isSecure ? SecureConnectionPool : ConnectionPool)(url, poolOptions)
  }

  get protocol(): 'http1' | 'http2' {
    return this.#options.protocol
  }

  /** Opens a connection outside the pool, to find out whether that is accepted. */
  connect(): Promise<Socket> {
    const { protocol, port, hostname, host } = this.#url
    return new Promise((resolve, reject) => {
      this.#connector(false)({ protocol, port, hostname, host }, (error, socket) => {
        if (error === null) resolve(socket)
        else reject(error)
      })
    })
  }

  /** Asks for a path outside the pool, so that a check does not wait behind requests. Resolves with the status. */
  async check(path: string, signal: AbortSignal): Promise<number> {
    this.#checkClient ??= new Client(this.#url, this.#clientOptions())
    const options = { method: 'GET', path, signal, servername: ONE_NAME, headers: { 'user-agent': 'sluice-health' } }
    const { statusCode, body } = await this.#checkClient.request(options as Dispatcher.RequestOptions)
    await body.dump({ limit: 65_536, signal })
    return statusCode
  }

  /** Closes connections when their requests are done. */
  async close(): Promise<void> {
    this.#closing ??= Promise.all([this.dispatcher.close(), this.#checkClient?.destroy()])
    await this.#closing
  }

  #clientOptions(): Client.Options {
    const usesHttp2 = this.#options.protocol === 'http2'
    return {
      connect: this.#connector(usesHttp2),
      allowH2: usesHttp2,
      pipelining: 1,
      ...(usesHttp2 && this.#url.protocol === 'http:' ? { h2Options: { useH2c: true } } : {}),
    }
  }

  #connector(usesHttp2: boolean): buildConnector.connector {
    const { connectTimeoutMs, tls } = this.#options
    const { ca, cert, key, serverName } = tls
    const settings = {
      timeout: connectTimeoutMs,
      allowH2: usesHttp2,
      preferH2: usesHttp2,
      useH2c: usesHttp2,
      lookup: this.#lookup,
      rejectUnauthorized: true,
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(serverName === undefined ? {} : { servername: serverName }),
    }
    const open = buildConnector(settings as buildConnector.BuildOptions)
    return ({ protocol, port, host }, done) => {
      const allowed = this.#allowed()
      const hostname = this.#url.hostname.replace(/^\[|\]$/g, '')
      if (allowed.length === 0) {
        // undici expects the callback later than the call.
        queueMicrotask(() => done(new DeniedAddressError(hostname, this.#addresses), null))
        return
      }
      open({ protocol, port, hostname, ...(host === undefined ? {} : { host }) }, done)
    }
  }

  /** In place of a query: the addresses of this instance that are allowed now. */
  readonly #lookup: LookupFunction = (hostname, { all }, done) => {
    const allowed = this.#allowed()
    const [first] = allowed
    if (first === undefined) done(new DeniedAddressError(hostname, this.#addresses), [])
    else if (all === true) done(null, allowed)
    else done(null, first.address, first.family)
  }

  #allowed(): LookedUpAddress[] {
    return this.#addresses
      .filter((address) => this.#options.guard.allows(address))
      .map((address) => ({ address, family: isIP(address) }))
  }
}
