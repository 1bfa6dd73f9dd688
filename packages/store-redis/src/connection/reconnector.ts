import type { Random, Timers } from '@sluice/core'
import { retryDelayMs } from '@sluice/core/internal'

const FIRST_DELAY_MS = 50
const MAX_DELAY_MS = 500

/** Delay before the next connection attempt; `failures` is 0 after the first failed one. */
export function reconnectDelayMs(failures: number, random: Random): number {
  return retryDelayMs(failures, { firstMs: FIRST_DELAY_MS, longestMs: MAX_DELAY_MS, random })
}

/** A client that a {@link Reconnector} keeps connected. */
export interface Reconnectable {
  /** Whether it is connected or connecting. If not, `connect` may be called. */
  readonly isOpen: boolean
  connect(): Promise<unknown>
  /** Disconnects at once. It can connect again. */
  destroy(): unknown
  on(event: 'error' | 'end' | 'disconnect', listener: (error?: Error) => void): unknown
}

/** Options of a {@link Reconnector}. */
export interface ReconnectorOptions {
  readonly timers: Timers
  readonly random: Random
  /** Timeout of one connection attempt, handshake included. */
  readonly connectTimeoutMs: number
}

/**
 * Connects a client, and reconnects it whenever the connection is lost, until it is closed. It never gives up or fails.
 */
export class Reconnector {
  readonly #client: Reconnectable
  readonly #options: ReconnectorOptions
  #failure: Error | undefined
  #isClosed = false
  /** Ends the wait for a lost connection. */
  #onLost: () => void = () => undefined
  /** Ends the delay before the next attempt, or the timeout of the current one. */
  #onClose: () => void = () => undefined

  constructor(client: Reconnectable, options: ReconnectorOptions) {
    this.#client = client
    this.#options = options
    const onEvent = (error?: Error): void => {
      if (error !== undefined) this.#failure = error
      if (!client.isOpen) this.#onLost()
    }
    // Without a listener, an error event would end the process.
    for (const event of ['error', 'end', 'disconnect'] as const) client.on(event, onEvent)
    void this.#run()
  }

  /** The last error, until the next successful connection. */
  get failure(): Error | undefined {
    return this.#failure
  }

  /** Drops a connection that does not reply. A new one replaces it. */
  drop(): void {
    void this.#disconnect()
  }

  /** Closes the connection for good. Can be called again. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#onClose()
    this.#onLost()
    await this.#disconnect()
  }

  async #run(): Promise<void> {
    let failures = 0
    while (!this.#isClosed) {
      if (await this.#connect()) {
        failures = 0
        await this.#untilLost()
      }
      if (!this.#isClosed) await this.#pause(reconnectDelayMs(failures++, this.#options.random))
    }
  }

  async #connect(): Promise<boolean> {
    try {
      await Promise.race([this.#client.connect(), this.#timeout(this.#options.connectTimeoutMs)])
      this.#failure = undefined
      return true
    } catch (error) {
      await this.#disconnect()
      this.#failure = error as Error
      return false
    } finally {
      // Cancels the timeout.
      this.#onClose()
    }
  }

  /** Never rejects: some client versions complain when a part of them is already closed. */
  async #disconnect(): Promise<void> {
    if (!this.#client.isOpen) return
    try {
      await this.#client.destroy()
    } catch (error) {
      this.#failure = error as Error
    }
  }

  /** Rejects after `ms`, or when `#onClose` is called. */
  #timeout(ms: number): Promise<never> {
    return this.#pause(ms).then(() => {
      throw new Error(`not connected within ${ms} ms`)
    })
  }

  async #untilLost(): Promise<void> {
    while (this.#client.isOpen && !this.#isClosed) {
      await new Promise<void>((resolve) => {
        this.#onLost = resolve
      })
    }
  }

  /** Resolves after `ms`, or when `#onClose` is called. */
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
