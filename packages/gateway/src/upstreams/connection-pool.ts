import type { IncomingHttpHeaders } from 'node:http'
import type { Duplex } from 'node:stream'
import { Client, Dispatcher, errors } from 'undici'

/** A request that waits for a connection. */
interface WaitingRequest {
  readonly options: Dispatcher.DispatchOptions
  readonly handler: Dispatcher.DispatchHandler
}

/**
 * Connections of HTTP/1.1 to one instance. Each has one request at a time; further requests wait in order.
 *
 * The connection used last is taken first: it is the least likely to be closed by the upstream at this moment, its
 * state is in the processor caches, and those that are not needed can close. undici's own pool takes the first free
 * one of its list, which it searches for each request; a request costs a tenth more with it.
 *
 * Invariant: a client is free, or has one request that has not ended for undici. So a request is never queued behind
 * another one while a connection is free.
 */
export class ConnectionPool extends Dispatcher {
  readonly #origin: URL
  readonly #options: Client.Options
  readonly #most: number
  readonly #clients: Client[] = []
  /** Clients without a request; the last one was used last. */
  readonly #free: Client[] = []
  readonly #waiting: WaitingRequest[] = []
  readonly #onRelease = (client: Client): void => this.#released(client)
  #closed: PromiseWithResolvers<void> | undefined
  #isClosing = false

  /** `connections`: maximum number of open ones. */
  constructor(origin: URL, options: Client.Options & { readonly connections: number }) {
    super()
    const { connections, ...clientOptions } = options
    this.#origin = origin
    this.#options = clientOptions
    this.#most = connections
  }

  /** False if further requests have to wait. */
  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (this.#closed !== undefined) throw new errors.ClientClosedError()
    const client = this.#free.pop() ?? this.#newClient()
    if (client === undefined) this.#waiting.push({ options, handler })
    else client.dispatch(options, new PooledRequest(client, handler, this.#onRelease))
    return this.#free.length > 0 || this.#clients.length < this.#most
  }

  override close(): Promise<void>
  override close(done: () => void): void
  /** Closes connections when their requests are done, also those that wait. */
  override close(done?: () => void): Promise<void> | undefined {
    if (this.#closed === undefined) {
      this.#closed = Promise.withResolvers()
      this.#closeClients()
    }
    const { promise } = this.#closed
    if (done === undefined) return promise
    void promise.then(done)
    return undefined
  }

  #newClient(): Client | undefined {
    if (this.#clients.length === this.#most) return undefined
    const client = new Client(this.#origin, this.#options)
    this.#clients.push(client)
    return client
  }

  #released(client: Client): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#free.push(client)
    else client.dispatch(next.options, new PooledRequest(client, next.handler, this.#onRelease))
    if (this.#closed !== undefined) this.#closeClients()
  }

  /** Closes all clients once no request waits for one. */
  #closeClients(): void {
    if (this.#isClosing || this.#waiting.length > 0) return
    this.#isClosing = true
    const { resolve, reject } = this.#closed!
    Promise.all(this.#clients.map((client) => client.close())).then(() => resolve(), reject)
  }
}

/** One request on a connection: tells when undici is done with it. */
class PooledRequest implements Dispatcher.DispatchHandler {
  readonly #handler: Dispatcher.DispatchHandler
  readonly #onRelease: (client: Client) => void
  #client: Client | undefined

  constructor(client: Client, handler: Dispatcher.DispatchHandler, onRelease: (client: Client) => void) {
    this.#client = client
    this.#handler = handler
    this.#onRelease = onRelease
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    this.#handler.onRequestStart?.(controller, context)
  }

  onBodySent(chunk: Buffer): void {
    this.#handler.onBodySent?.(chunk)
  }

  onRequestSent(): void {
    this.#handler.onRequestSent?.()
  }

  // biome-ignore lint/complexity/useMaxParams: undici calls it
  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    statusText?: string,
  ): void {
    this.#handler.onResponseStart?.(controller, status, headers, statusText)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#handler.onResponseData?.(controller, chunk)
  }

  onResponseEnd(controller: Dispatcher.DispatchController, trailers: IncomingHttpHeaders): void {
    this.#release()
    this.#handler.onResponseEnd?.(controller, trailers)
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    this.#release()
    this.#handler.onResponseError?.(controller, error)
  }

  // biome-ignore lint/complexity/useMaxParams: undici calls it
  onRequestUpgrade(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    socket: Duplex,
  ): void {
    this.#release()
    this.#handler.onRequestUpgrade?.(controller, status, headers, socket)
  }

  /** An error may follow the end, if the handler of the end throws. */
  #release(): void {
    const client = this.#client
    this.#client = undefined
    if (client !== undefined) this.#onRelease(client)
  }
}
