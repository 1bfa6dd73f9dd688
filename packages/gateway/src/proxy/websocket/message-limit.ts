import type { MessageRates } from '../../config/compiled-config.ts'

const MS_PER_SECOND = 1000

/** Two token buckets of one connection: messages and bytes. */
export class MessageLimit {
  readonly #rates: MessageRates
  #messages: number
  #bytes: number
  #filledMs: number

  constructor(rates: MessageRates, nowMs: number) {
    this.#rates = rates
    this.#messages = capacity(rates.messagesPerSecond, rates.burstSeconds)
    this.#bytes = capacity(rates.bytesPerSecond, rates.burstSeconds)
    this.#filledMs = nowMs
  }

  /** Takes messages and bytes. False if there are not enough: the connection has to be closed. */
  take(messages: number, bytes: number, nowMs: number): boolean {
    const { messagesPerSecond, bytesPerSecond, burstSeconds } = this.#rates
    const seconds = Math.max(0, nowMs - this.#filledMs) / MS_PER_SECOND
    this.#filledMs = Math.max(this.#filledMs, nowMs)
    this.#messages = refill(this.#messages, messagesPerSecond * seconds, capacity(messagesPerSecond, burstSeconds))
    this.#bytes = refill(this.#bytes, bytesPerSecond * seconds, capacity(bytesPerSecond, burstSeconds))
    this.#messages -= messages
    this.#bytes -= bytes
    return this.#messages >= 0 && this.#bytes >= 0
  }
}

/** At least one message must fit, however slow the rate is. */
function capacity(perSecond: number, burstSeconds: number): number {
  return Math.max(1, perSecond * burstSeconds)
}

function refill(left: number, added: number, most: number): number {
  // Infinity times 0 is not a number.
  if (most === Number.POSITIVE_INFINITY) return most
  return Math.min(most, left + added)
}
