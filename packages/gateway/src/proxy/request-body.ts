import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'

/** The body is longer than its route allows. */
export class BodyTooLarge extends Error {}

/** The client left before the end of its body. */
export class ClientGone extends Error {}

/**
 * The body of a request on its way to one attempt. It takes bytes from the client only when the upstream asks for them,
 * and ends without ending the connection of the client: the gateway still has to answer.
 */
export class RequestBody extends Readable {
  readonly #source: IncomingMessage
  readonly #maxBytes: number
  readonly #onBytes: (bytes: number) => void
  #isAttached = false
  #bytes = 0

  constructor(source: IncomingMessage, maxBytes: number, onBytes: (bytes: number) => void) {
    super({ highWaterMark: 65_536 })
    this.#source = source
    this.#maxBytes = maxBytes
    this.#onBytes = onBytes
  }

  override _read(): void {
    if (!this.#isAttached) {
      this.#isAttached = true
      this.#source.on('data', this.#onData).on('end', this.#onEnd).on('error', this.#onGone).on('close', this.#onGone)
    }
    this.#source.resume()
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    if (this.#isAttached) {
      this.#source
        .off('data', this.#onData)
        .off('end', this.#onEnd)
        .off('error', this.#onGone)
        .off('close', this.#onGone)
      this.#source.on('error', ignore)
      this.#source.pause()
    }
    callback(error)
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#bytes += chunk.length
    this.#onBytes(chunk.length)
    if (this.#bytes > this.#maxBytes) this.destroy(new BodyTooLarge(`more than ${this.#maxBytes} bytes`))
    else if (!this.push(chunk)) this.#source.pause()
  }

  readonly #onEnd = (): void => void this.push(null)

  readonly #onGone = (): void => {
    if (!this.#source.readableEnded) this.destroy(new ClientGone('the client closed the connection'))
  }
}

function ignore(): void {
  // The connection is being closed already.
}
