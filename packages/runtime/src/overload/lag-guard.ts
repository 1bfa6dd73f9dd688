import type { NowMs } from '../clock-and-random.ts'
import { readClock } from '../clock-and-random.ts'
import { invalidOption, requireNumber } from '../option-range.ts'

/** Measures the delay of the event loop. */
export interface LoopDelay {
  /**
   * Average delay of timers since the last call, in milliseconds, 0 or more; undefined if none was due. An average,
   * because one long pause of the garbage collector is not an overload.
   */
  readonly readMs: () => number | undefined
}

/** Options of {@link LagGuard}. */
export interface LagGuardOptions {
  readonly delay: LoopDelay
  /** The clock. */
  readonly nowMs: NowMs
  /** The loop is late from this delay on. Default: 100. */
  readonly lateFromMs?: number | undefined
  /** It stays late until the delay is below this; at most `lateFromMs`. Default: half of it. */
  readonly untilBelowMs?: number | undefined
  /** Minimum interval between two measurements in milliseconds. Default: 250. */
  readonly everyMs?: number | undefined
}

const DEFAULT_LATE_FROM_MS = 100
const DEFAULT_EVERY_MS = 250

/**
 * Detects whether the event loop is so late that new work would only make it later. Between the two bounds the state
 * does not change (hysteresis).
 */
export class LagGuard {
  readonly #delay: LoopDelay
  readonly #nowMs: NowMs
  readonly #lateFromMs: number
  readonly #untilBelowMs: number
  readonly #everyMs: number
  #readAt: number
  #lagMs = 0
  #isLate = false

  constructor(options: LagGuardOptions) {
    const { lateFromMs = DEFAULT_LATE_FROM_MS, everyMs = DEFAULT_EVERY_MS } = options
    const { untilBelowMs = lateFromMs / 2 } = options
    const range = { min: 1, max: Number.MAX_SAFE_INTEGER }
    this.#lateFromMs = requireNumber('lateFromMs', lateFromMs, range)
    this.#untilBelowMs = requireNumber('untilBelowMs', untilBelowMs, { min: 0, max: range.max })
    if (untilBelowMs > lateFromMs)
      throw invalidOption('untilBelowMs', untilBelowMs, `at most lateFromMs, ${lateFromMs}`)
    this.#everyMs = requireNumber('everyMs', everyMs, range)
    this.#delay = options.delay
    this.#nowMs = options.nowMs
    this.#readAt = readClock(options.nowMs)
  }

  /** Whether the loop is late; cheap enough to call for every request. */
  isLate(): boolean {
    const now = readClock(this.#nowMs)
    // Also when the clock has gone back: what was measured since is worth as much.
    if (Math.abs(now - this.#readAt) >= this.#everyMs) {
      this.#readAt = now
      this.#judge(this.#delay.readMs())
    }
    return this.#isLate
  }

  /** The delay that was read last, in milliseconds; 0 at first. */
  get lagMs(): number {
    return this.#lagMs
  }

  #judge(lagMs: number | undefined): void {
    if (lagMs === undefined) return
    this.#lagMs = lagMs
    this.#isLate = this.#isLate ? lagMs >= this.#untilBelowMs : lagMs >= this.#lateFromMs
  }
}
