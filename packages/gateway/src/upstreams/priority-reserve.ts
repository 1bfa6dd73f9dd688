/** Number of priority classes; 0 is the most important. */
const CLASSES = 4

/** For so long after its last request, room is kept for a class. */
const KEPT_MS = 10_000

/** One slot of this many is kept for each more important class. */
const KEPT_OF = 10

/**
 * Keeps room for more important requests as a concurrency limit is approached.
 *
 * A request may use `limit - k x ceil(limit / 10)` slots, where k is the number of more important classes with a
 * request in the last 10 seconds, but always one. So without important requests nothing is kept free, and with them,
 * requests of lower classes are turned away first.
 *
 * Invariant: with a limit of 2 or more, no request of a lower class takes the last slot within 10 seconds of a request
 * of class 0.
 */
export class PriorityReserve {
  readonly #seenMs: number[] = Array.from({ length: CLASSES }, () => Number.NEGATIVE_INFINITY)

  /** Notes a request of a class, whether or not there is room for it. */
  note(priority: number, nowMs: number): void {
    this.#seenMs[priority] = nowMs
  }

  /** Slots of a limit that a request of this class may use. */
  slotsFor(priority: number, limit: number, nowMs: number): number {
    let moreImportant = 0
    for (let other = 0; other < priority; other++) if (nowMs - this.#seenMs[other]! < KEPT_MS) moreImportant++
    return Math.max(1, limit - moreImportant * Math.ceil(limit / KEPT_OF))
  }
}
