import type { Timers } from '@sluice/core'

/** How often time limits are checked: a request may take so much longer. */
export const WATCH_EVERY_MS = 250

/** Something with time limits. */
export interface Watched {
  /** Ends it if its time is up. */
  check(nowMs: number): void
  /** Told that the gateway stops: ends what would not end by itself. */
  leave(): void
}

/**
 * Checks the time limits of all requests in flight together. A timer for each request, moved with each chunk of a body,
 * would cost more than the rest of the gateway.
 */
export class ExchangeWatch {
  readonly #timers: Timers
  readonly #nowMs: () => number
  readonly #watched = new Set<Watched>()
  #cancel: (() => void) | undefined

  constructor(timers: Timers, nowMs: () => number) {
    this.#timers = timers
    this.#nowMs = nowMs
  }

  /** Requests in flight. */
  get size(): number {
    return this.#watched.size
  }

  add(watched: Watched): void {
    this.#watched.add(watched)
    this.#cancel ??= this.#timers.schedule(WATCH_EVERY_MS, this.#run)
  }

  remove(watched: Watched): void {
    this.#watched.delete(watched)
  }

  /** All that is watched, at this moment. */
  all(): readonly Watched[] {
    return [...this.#watched]
  }

  /** Stops checking; nothing may be added afterwards. */
  close(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }

  readonly #run = (): void => {
    this.#cancel = undefined
    const nowMs = this.#nowMs()
    for (const watched of this.#watched) watched.check(nowMs)
    if (this.#watched.size > 0) this.#cancel = this.#timers.schedule(WATCH_EVERY_MS, this.#run)
  }
}
