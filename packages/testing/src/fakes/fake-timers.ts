import type { Timers } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type { FakeClock } from './fake-clock.ts'

interface Timer {
  readonly dueMicros: number
  readonly run: () => void
}

/** Enough turns of the microtask queue for any chain of promises between a timer and what waits for it. */
const TURNS = 64

/** Timers on a {@link FakeClock}: nothing fires until {@link FakeTimers.advance}. */
export class FakeTimers implements Timers {
  readonly #clock: FakeClock
  readonly #timers = new Set<Timer>()

  constructor(clock: FakeClock) {
    this.#clock = clock
  }

  /** Timers that are waiting. 0 at the end of a test says that nothing was left behind. */
  get pending(): number {
    return this.#timers.size
  }

  schedule(delayMs: number, run: () => void): () => void {
    const dueMicros = this.#clock.nowMicros() + Math.ceil(delayMs * MICROS_PER_MS)
    const timer = { dueMicros, run }
    this.#timers.add(timer)
    return () => void this.#timers.delete(timer)
  }

  /**
   * Moves the clock on by `ms`, stopping at every timer on the way, the soonest first and those of one instant in the
   * order they were made. After each, promise callbacks run, so that a timer they make is seen. Awaiting `advance(0)`
   * lets promise callbacks run and fires what is due.
   */
  async advance(ms: number): Promise<void> {
    const untilMicros = this.#clock.nowMicros() + Math.round(ms * MICROS_PER_MS)
    await runPromises()
    for (let timer = this.#next(untilMicros); timer !== undefined; timer = this.#next(untilMicros)) {
      this.#timers.delete(timer)
      this.#clock.setMicros(Math.max(this.#clock.nowMicros(), timer.dueMicros))
      timer.run()
      await runPromises()
    }
    this.#clock.setMicros(Math.max(this.#clock.nowMicros(), untilMicros))
  }

  #next(untilMicros: number): Timer | undefined {
    let next: Timer | undefined
    for (const timer of this.#timers) {
      if (timer.dueMicros <= untilMicros && (next === undefined || timer.dueMicros < next.dueMicros)) next = timer
    }
    return next
  }
}

async function runPromises(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await undefined
}
