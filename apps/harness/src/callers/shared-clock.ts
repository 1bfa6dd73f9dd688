import type { Clock } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'

/** 2026-01-01T00:00:00Z, at which a window of any length in use here begins. */
const START_MS = 1_767_225_600_000

/**
 * A clock that stands still until it is moved, the same in every thread that holds its memory. Nothing refills, leaks
 * or expires while requests are made, so that their count has one right answer.
 */
export class SharedClock implements Clock {
  readonly #micros: BigInt64Array

  private constructor(memory: SharedArrayBuffer) {
    this.#micros = new BigInt64Array(memory)
  }

  /** A clock that stands at the beginning of a window. */
  static create(): SharedClock {
    const clock = new SharedClock(new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT))
    clock.moveTo(START_MS)
    return clock
  }

  /** The clock of another thread, by its {@link memory}. */
  static attach(memory: SharedArrayBuffer): SharedClock {
    return new SharedClock(memory)
  }

  /** For {@link SharedClock.attach} in another thread. */
  get memory(): SharedArrayBuffer {
    return this.#micros.buffer as SharedArrayBuffer
  }

  nowMicros(): number {
    return Number(Atomics.load(this.#micros, 0))
  }

  /** Moves the time for all threads, to whole milliseconds since 1970. */
  moveTo(atMs: number): void {
    Atomics.store(this.#micros, 0, BigInt(atMs * MICROS_PER_MS))
  }
}
