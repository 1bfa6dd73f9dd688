import type { Decision } from '@sluice/core'
import { systemMonotonicMs } from '@sluice/core/internal'
import { pause } from './ground.test.support.ts'
import { count, emptyTally, type Tally } from './tally.test.support.ts'

/** How a {@link Caller} asks. */
export interface Calling {
  readonly check: () => Promise<Decision>
  /** Number of checks in flight at once. Default: 1. */
  readonly atOnce?: number
  /** Milliseconds between two rounds of checks. Default: 0. After a round of denials at least 5. */
  readonly pauseMs?: number
  /** Called for every check that the store admitted. */
  readonly onAdmitted?: () => void
}

/** Checks again and again, and counts what becomes of it, until it is stopped. */
export class Caller {
  readonly tally: Tally = emptyTally()
  /** When the store last admitted a check (monotone milliseconds), and when something was last decided without it. */
  admittedAtMs: number = Number.NEGATIVE_INFINITY
  failedAtMs: number = Number.NEGATIVE_INFINITY
  /** The longest time from one admission to the next with failures in between. */
  outageMs = 0
  readonly #calling: Calling
  readonly #ended: Promise<void>
  #isStopped = false

  constructor(calling: Calling) {
    this.#calling = calling
    this.#ended = this.#call()
  }

  /** Resolves when the last check is answered. */
  async stop(): Promise<Tally> {
    this.#isStopped = true
    await this.#ended
    return this.tally
  }

  async #call(): Promise<void> {
    const { atOnce = 1, pauseMs = 0 } = this.#calling
    while (!this.#isStopped) {
      const admitted = this.tally.allowed
      await Promise.all(Array.from({ length: atOnce }, () => this.#check()))
      const restMs = this.tally.allowed === admitted ? Math.max(5, pauseMs) : pauseMs
      if (restMs > 0) await pause(restMs)
    }
  }

  async #check(): Promise<void> {
    const { check, onAdmitted } = this.#calling
    const askedMs = systemMonotonicMs()
    try {
      const decision = await check()
      count(this.tally, decision)
      const nowMs = systemMonotonicMs()
      this.tally.longestMs = Math.max(this.tally.longestMs, nowMs - askedMs)
      if (decision.failure !== undefined) this.failedAtMs = nowMs
      else if (decision.allowed) {
        if (this.failedAtMs > this.admittedAtMs && this.tally.allowed > 1)
          this.outageMs = Math.max(this.outageMs, nowMs - this.admittedAtMs)
        this.admittedAtMs = nowMs
        onAdmitted?.()
      }
    } catch (error) {
      this.tally.errors.push(String(error))
    }
  }
}
