import type { Clock, PolicyDecision, PolicyEngine, PolicyRequest } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { Random, Sleep } from '@sluice/runtime'
import { backoffDelayMs } from '@sluice/runtime'
import type { Taken } from './ticket.ts'

/** What waiting works with. */
export interface SlotLineParts {
  readonly engine: PolicyEngine
  readonly clock: Clock
  readonly sleep: Sleep
  readonly random: Random
}

/** How long to wait for a slot. */
export interface SlotWait {
  readonly maxWaitMs: number
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal
}

/** Most requests that wait at once in this thread; one more is answered as if it did not want to. */
const MOST_WAITING = 1000

/** How often a waiting request looks: soon at first, then four times a second. */
const LOOKS = { baseMs: 25, capMs: 250 } as const

/**
 * Takes slots for requests that wait for one. Slots come back in any process, so a waiting request looks again and again; it
 * only looks, because a refusal would count against the caller where rules have penalties. There is no order among those
 * who wait.
 */
export class SlotLine {
  readonly #parts: SlotLineParts
  #waiting = 0

  constructor(parts: SlotLineParts) {
    this.#parts = parts
  }

  /** Waits until the request is allowed, the time is over, or waiting does not help. */
  async take(request: PolicyRequest, { maxWaitMs, signal }: SlotWait): Promise<Taken> {
    if (this.#waiting >= MOST_WAITING) return await this.#parts.engine.reserve(request)
    this.#waiting++
    try {
      return await this.#take(request, { maxWaitMs, signal })
    } finally {
      this.#waiting--
    }
  }

  async #take(request: PolicyRequest, { maxWaitMs, signal }: SlotWait): Promise<Taken> {
    const { engine, sleep, random } = this.#parts
    const deadlineMs = this.#nowMs() + maxWaitMs
    for (let look = 0; ; look++) {
      const leftMs = deadlineMs - this.#nowMs()
      const seen = leftMs > 0 ? await engine.peek(request) : undefined
      if (seen === undefined || !isWorthWaiting(seen)) {
        const taken = await engine.reserve(request)
        if ('claim' in taken && signal.aborted) await taken.release()
        if ('claim' in taken || leftMs <= 0 || !isWorthWaiting(taken)) return taken
      }
      try {
        await sleep(Math.min(leftMs, backoffDelayMs(look, random, LOOKS)), signal)
      } catch (reason) {
        // Nobody reads the answer any more.
        if (signal.aborted && seen !== undefined) return seen
        throw reason
      }
    }
  }

  #nowMs(): number {
    return this.#parts.clock.nowMicros() / MICROS_PER_MS
  }
}

function isWorthWaiting({ allowed, reason }: PolicyDecision): boolean {
  return !allowed && reason === 'limit'
}
