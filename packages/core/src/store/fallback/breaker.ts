import { checkWhole } from '../../options/known-options.ts'
import type { Random } from '../../system/random.ts'
import type { BreakerState } from '../store-event.ts'

/** When a {@link Breaker} opens, and for how long. */
export interface BreakerOptions {
  /** Consecutive failures that open it, 1 to 1,000. Default: 5. */
  readonly failures?: number
  /** The first pause, 1 to 60,000. Default: 250. Each failed probe doubles the pause. */
  readonly basePauseMs?: number
  /** The longest pause, 1 to 60,000, before random jitter of up to a quarter. Default: 1,000. */
  readonly maxPauseMs?: number
}

/** How a {@link Breaker} treats a process that has just started. */
export interface BreakerStart {
  readonly atMs: number
  /** Failures count after the first answer, or after this time without one. */
  readonly graceMs: number
}

interface BreakerParts extends BreakerOptions {
  readonly random: Random
  /** Default: no special treatment of the start. */
  readonly start?: BreakerStart | undefined
  /** Whether it always stays closed: the parts of the store have their own breakers. Default: false. */
  readonly neverOpens?: boolean
  /** Called with every change of state. */
  readonly onChange?: (state: BreakerState) => void
}

/** The ticket of a call that must not be made. */
export const NOT_ADMITTED = 0

const SLICES = 10
const SLICE_MS = 100

/** With fewer calls than this in a second, their failure ratio is ignored. */
const LEAST_CALLS = 20

/**
 * For this long after the start, the first pause is a tenth of the usual one: a cold process misses deadlines for
 * reasons unrelated to the store, and a pause affects thousands of its calls.
 */
const EARLY_MS = 10_000

const DRAWS = 0x1_00_00_00_00

/**
 * Stops asking what does not answer.
 *
 * ```text
 *            5 failures in a row, or half of
 *            the last second's 20 calls or more
 *   closed ------------------------------------> open <----+
 *     ^                                           |        | the probe failed:
 *     |                       the pause is over,  |        | a pause twice as long
 *     |                       at the next call    v        |
 *     +------------------------------------- half-open ----+
 *              the probe was answered        (one call out)
 * ```
 *
 * A call is admitted with a ticket and ends with it. The ticket of an earlier state counts for nothing, so a call that
 * was sent before the breaker opened neither closes it nor lengthens its pause. Instants come in as arguments, in
 * milliseconds of one clock that does not go back. The last second is the 100 ms slice of now and the nine before it.
 *
 * After a start, failures before the first answer do not count for `graceMs`, and for 10 s the first pause is a tenth.
 */
export class Breaker {
  readonly #failures: number
  readonly #basePauseMs: number
  readonly #maxPauseMs: number
  readonly #random: Random
  readonly #onChange: ((state: BreakerState) => void) | undefined
  readonly #neverOpens: boolean
  readonly #earlyUntilMs: number
  readonly #calls: number[] = Array.from({ length: SLICES }, () => 0)
  readonly #failed: number[] = Array.from({ length: SLICES }, () => 0)
  #state: BreakerState = 'closed'
  /** Increases with every change of state: the ticket of calls admitted in it. */
  #ticket = 1
  #inARow = 0
  #slice = 0
  #pauseMs: number
  #openUntilMs = 0
  /** Until when failures do not count. */
  #graceUntilMs: number

  constructor(parts: BreakerParts) {
    this.#failures = checkWhole('failures', parts.failures ?? 5, { of: 'the breaker', most: 1000 })
    this.#basePauseMs = checkWhole('basePauseMs', parts.basePauseMs ?? 250, { of: 'the breaker', most: 60_000 })
    this.#maxPauseMs = checkWhole('maxPauseMs', parts.maxPauseMs ?? 1000, { of: 'the breaker', most: 60_000 })
    this.#pauseMs = this.#basePauseMs
    this.#random = parts.random
    this.#onChange = parts.onChange
    this.#neverOpens = parts.neverOpens ?? false
    const { start } = parts
    this.#graceUntilMs = start === undefined ? Number.NEGATIVE_INFINITY : start.atMs + start.graceMs
    this.#earlyUntilMs = start === undefined ? Number.NEGATIVE_INFINITY : start.atMs + EARLY_MS
  }

  get state(): BreakerState {
    return this.#state
  }

  /**
   * The ticket of a call that may be made now, or {@link NOT_ADMITTED}. Every ticket must be returned to one of the
   * other methods.
   */
  admit(nowMs: number): number {
    if (this.#state === 'closed') return this.#ticket
    if (this.#state === 'half-open' || nowMs < this.#openUntilMs) return NOT_ADMITTED
    this.#become('half-open')
    return this.#ticket
  }

  /** The call was answered. */
  succeeded(ticket: number, nowMs: number): void {
    if (ticket !== this.#ticket) return
    this.#graceUntilMs = Number.NEGATIVE_INFINITY
    if (this.#state === 'closed') {
      this.#inARow = 0
      this.#count(this.#calls, nowMs)
      return
    }
    this.#inARow = 0
    this.#calls.fill(0)
    this.#failed.fill(0)
    this.#become('closed')
  }

  /** The call failed, or was not answered. */
  failed(ticket: number, nowMs: number): void {
    if (ticket !== this.#ticket || this.#neverOpens) return
    if (this.#state === 'closed') {
      if (nowMs < this.#graceUntilMs) return
      this.#inARow++
      this.#count(this.#calls, nowMs)
      this.#count(this.#failed, nowMs)
      if (this.#inARow < this.#failures && !this.#failsByHalf()) return
      this.#pauseMs = nowMs < this.#earlyUntilMs ? this.#basePauseMs / 10 : this.#basePauseMs
    }
    const chance = 0.75 + this.#random.nextUint32() / DRAWS / 2
    this.#openUntilMs = nowMs + this.#pauseMs * chance
    this.#pauseMs = Math.min(this.#maxPauseMs, this.#pauseMs * 2)
    this.#become('open')
  }

  /**
   * The call tells nothing about the store as a whole, or was misuse. If it was the probe, the next call is the probe.
   */
  withdrawn(ticket: number): void {
    if (ticket === this.#ticket && this.#state === 'half-open') this.#become('open')
  }

  /** Time until a call may be admitted: 0 if the next one may be. */
  pauseLeftMs(nowMs: number): number {
    return this.#state === 'open' ? Math.max(0, this.#openUntilMs - nowMs) : 0
  }

  #become(state: BreakerState): void {
    this.#state = state
    this.#ticket++
    this.#onChange?.(state)
  }

  #count(counts: number[], nowMs: number): void {
    const slice = Math.max(this.#slice, Math.floor(nowMs / SLICE_MS))
    for (let fresh = Math.max(this.#slice + 1, slice - SLICES + 1); fresh <= slice; fresh++) {
      this.#calls[fresh % SLICES] = 0
      this.#failed[fresh % SLICES] = 0
    }
    this.#slice = slice
    counts[slice % SLICES]!++
  }

  #failsByHalf(): boolean {
    let [calls, failed] = [0, 0]
    for (let slice = 0; slice < SLICES; slice++) {
      calls += this.#calls[slice]!
      failed += this.#failed[slice]!
    }
    return calls >= LEAST_CALLS && failed * 2 >= calls
  }
}
