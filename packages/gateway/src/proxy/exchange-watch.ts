import type { Timers } from '@sluice/core'

/** How often time limits are checked: a request may take so much longer. */
export const WATCH_EVERY_MS = 250

/** Something with time limits. */
export interface Watched {
  /** Where {@link ExchangeWatch} keeps it; -1 while it does not. */
  watchedAt: number
  /** Ends it if its time is up. */
  check(nowMs: number): void
  /** Told that the gateway stops: ends what would not end by itself. */
  leave(): void
}

/**
 * Checks the time limits of all requests in flight together. A timer for each request, moved with each chunk of a body,
 * would cost more than the rest of the gateway.
 *
 * They are in an array, each with its place in it. A `Set` would keep requests that have ended: V8 replaces the table
 * of a set as members come and go, an old table refers to the next one, and those that have reached the old generation
 * hold what the young generation would free. A third of the memory of all requests survived each collection so.
 */
export class ExchangeWatch {
  readonly #timers: Timers
  readonly #nowMs: () => number
  readonly #watched: Watched[] = []
  #cancel: (() => void) | undefined

  constructor(timers: Timers, nowMs: () => number) {
    this.#timers = timers
    this.#nowMs = nowMs
  }

  /** Requests in flight. */
  get size(): number {
    return this.#watched.length
  }

  add(watched: Watched): void {
    watched.watchedAt = this.#watched.push(watched) - 1
    this.#cancel ??= this.#timers.schedule(WATCH_EVERY_MS, this.#run)
  }

  remove(watched: Watched): void {
    const { watchedAt } = watched
    if (watchedAt < 0) return
    watched.watchedAt = -1
    const last = this.#watched.pop()!
    if (last === watched) return
    this.#watched[watchedAt] = last
    last.watchedAt = watchedAt
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
    // From the end: what ends is replaced by what was checked before.
    for (let index = this.#watched.length - 1; index >= 0; index--) this.#watched[index]?.check(nowMs)
    if (this.#watched.length > 0) this.#cancel = this.#timers.schedule(WATCH_EVERY_MS, this.#run)
  }
}
