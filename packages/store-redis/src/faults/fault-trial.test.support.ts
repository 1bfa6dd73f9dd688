import type { Decision } from '@sluice/core'
import { systemTimers } from '@sluice/core'
import { systemMonotonicMs } from '@sluice/core/internal'
import type { Failure, StoreEvent } from '@sluice/core/store'

/** A window that does not end during a test: what is counted in it stays. */
export const LONG_WINDOW = '365d'

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void systemTimers.schedule(ms, resolve))
}

/** Asks every 5 ms until the answer is yes, and says how many milliseconds that took; fails after 10 seconds. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<number> {
  const startedMs = systemMonotonicMs()
  for (;;) {
    if (await holds()) return systemMonotonicMs() - startedMs
    if (systemMonotonicMs() - startedMs > 10_000) throw new Error(`waited in vain until ${what}`)
    await pause(5)
  }
}

/** How a decision came about: by the store, or by a failure mode and why. */
function originOf(failure: Failure | undefined): string {
  return failure === undefined ? 'store' : `${failure.mode} ${failure.cause} ${failure.charged}`
}

/** Counts the answers to checks, and how long each took. */
export class Tally {
  readonly #origins: Record<string, number> = {}
  readonly #tookMs: number[] = []
  asked = 0
  allowed = 0
  /** Allowed by the store. */
  admitted = 0
  /** Answered without the store, which may have charged all the same. */
  unknown = 0

  async count(check: () => Promise<Decision>): Promise<Decision> {
    this.asked++
    const startedMs = systemMonotonicMs()
    const decision = await check()
    this.#tookMs.push(systemMonotonicMs() - startedMs)
    const { allowed, failure } = decision
    const origin = originOf(failure)
    this.#origins[origin] = (this.#origins[origin] ?? 0) + 1
    if (allowed) this.allowed++
    if (allowed && failure === undefined) this.admitted++
    if (failure?.charged === 'unknown') this.unknown++
    return decision
  }

  get answered(): number {
    return this.#tookMs.length
  }

  /** Answers by how they came about. */
  get origins(): Readonly<Record<string, number>> {
    return { ...this.#origins }
  }

  /** Answers that were not the store's. */
  get fellBack(): number {
    return this.answered - (this.#origins['store'] ?? 0)
  }

  get longestMs(): number {
    return Math.max(0, ...this.#tookMs)
  }

  /** The time that this part of the answers took at most. */
  quantileMs(part: number): number {
    const sorted = this.#tookMs.toSorted((one, other) => one - other)
    return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0
  }

  /** One line for the record. */
  toString(): string {
    const origins = Object.entries(this.#origins).map(([origin, count]) => `${origin}: ${count}`)
    return (
      `${this.answered} of ${this.asked} answered, longest ${this.longestMs.toFixed(1)} ms, p99 ` +
      `${this.quantileMs(0.99).toFixed(1)} ms; ${origins.join(', ')}`
    )
  }
}

/** A check that takes longer than this hangs: generous, because machines that run tests are busy. */
export function patience(deadlineMs: number): number {
  return 4 * deadlineMs + 200
}

/** Callers that ask one after the other, each until told to stop. */
export class Callers {
  readonly tally: Tally = new Tally()
  readonly #loops: Promise<void>[]
  #isOver = false

  constructor(count: number, check: (caller: number) => Promise<Decision>) {
    this.#loops = Array.from({ length: count }, (_, caller) => this.#loop(() => check(caller)))
    // A test that fails does not come to stop(): its callers end when the store is closed, and need not be heard.
    for (const loop of this.#loops) loop.catch(() => undefined)
  }

  /** Resolves when every caller has got its last answer. */
  async stop(): Promise<Tally> {
    this.#isOver = true
    await Promise.all(this.#loops)
    return this.tally
  }

  async #loop(check: () => Promise<Decision>): Promise<void> {
    while (!this.#isOver) {
      await this.tally.count(check)
      // Answers that need no store come at once: the rest of the process must get its turn.
      await pause(1)
    }
  }
}

/** Records the events of a store. */
export class Witness {
  readonly events: StoreEvent[] = []
  readonly observe = (event: StoreEvent): void => {
    this.events.push(event)
  }

  /** The states that the breaker went through. */
  get breaker(): string[] {
    return this.events.flatMap((event) => (event.type === 'breaker' ? [event.state] : []))
  }

  /** The messages of the errors, each once. */
  get messages(): string[] {
    const messages = this.events.flatMap((event) =>
      event.type === 'failed' && event.error instanceof Error ? [event.error.message] : [],
    )
    return [...new Set(messages)]
  }
}
