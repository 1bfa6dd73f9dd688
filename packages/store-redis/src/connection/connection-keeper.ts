import type { Random, Timers } from '@sluice/core'
import { reconnectDelayMs } from './reconnect-delay.ts'

/** What is kept connected. */
export interface Reconnectable {
  /** Whether it is connected or tries to be. When not, `connect` may be called. */
  readonly isOpen: boolean
  connect(): Promise<unknown>
  /** Ends it at once. It can be connected again. */
  destroy(): unknown
  on(event: 'error' | 'end' | 'disconnect', listener: (error?: Error) => void): unknown
}

/** How a connection is kept. */
export interface KeeperOptions {
  readonly timers: Timers
  readonly random: Random
  /** Milliseconds that one try to connect may take, greeting included. */
  readonly connectWithinMs: number
}

/**
 * Connects a client and connects it again whenever it has lost its connection, until it is closed. It never gives up and
 * never fails; what stood in the way last is its `failure`.
 */
export class ConnectionKeeper {
  readonly #client: Reconnectable
  readonly #options: KeeperOptions
  #failure: Error | undefined
  #isClosed = false
  /** Ends the wait for a loss of the connection. */
  #onLost: () => void = () => undefined
  /** Ends the wait for the next try, or the try itself. */
  #onClose: () => void = () => undefined

  constructor(client: Reconnectable, options: KeeperOptions) {
    this.#client = client
    this.#options = options
    const look = (error?: Error): void => {
      if (error !== undefined) this.#failure = error
      if (!client.isOpen) this.#onLost()
    }
    // A client without a listener for errors would end the process.
    for (const event of ['error', 'end', 'disconnect'] as const) client.on(event, look)
    void this.#keep()
  }

  get failure(): Error | undefined {
    return this.#failure
  }

  /** Ends the connection, so that another takes its place: for one that gives no answers. */
  drop(): void {
    void this.#end()
  }

  /** Ends the connection for good. Resolves when it has ended; may be called again. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#onClose()
    this.#onLost()
    await this.#end()
  }

  async #keep(): Promise<void> {
    let failures = 0
    while (!this.#isClosed) {
      if (await this.#connect()) {
        failures = 0
        await this.#loss()
      }
      if (!this.#isClosed) await this.#pause(reconnectDelayMs(failures++, this.#options.random))
    }
  }

  /** Tries once. */
  async #connect(): Promise<boolean> {
    try {
      await Promise.race([this.#client.connect(), this.#lapse(this.#options.connectWithinMs)])
      this.#failure = undefined
      return true
    } catch (error) {
      await this.#end()
      this.#failure = error as Error
      return false
    } finally {
      // The time that was left of the try.
      this.#onClose()
    }
  }

  /** Ends what is open. Never fails: parts of a client may have ended before, which some versions complain about. */
  async #end(): Promise<void> {
    if (!this.#client.isOpen) return
    try {
      await this.#client.destroy()
    } catch (error) {
      this.#failure = error as Error
    }
  }

  /** Rejects when the time is over, or ended by `#onClose`. */
  #lapse(ms: number): Promise<never> {
    return this.#pause(ms).then(() => {
      throw new Error(`not connected within ${ms} ms`)
    })
  }

  /** Waits until the client has lost its connection for good. */
  async #loss(): Promise<void> {
    while (this.#client.isOpen && !this.#isClosed) {
      await new Promise<void>((resolve) => {
        this.#onLost = resolve
      })
    }
  }

  /** Waits, or until `#onClose`. */
  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.timers.schedule(ms, resolve)
      this.#onClose = () => {
        cancel()
        resolve()
      }
    })
  }
}
