import { RuntimeError } from '../errors.ts'
import { requireInteger } from '../option-range.ts'

/** When {@link InFlight} refuses. */
export interface InFlightOptions {
  /** How much work may be under way at once; 1 or more. */
  readonly most: number
  /** Refuses everything while it says so: usually the `isLate` of a {@link LagGuard}. Not asked when there is no room. */
  readonly isOverloaded?: (() => boolean) | undefined
}

/** What is under way and what was refused so far. */
export interface InFlightCounts {
  /** Under way now. */
  readonly current: number
  /** The most that was under way at once. */
  readonly peak: number
  /** Let in so far. */
  readonly entered: number
  /** Refused because there was no room. */
  readonly refusedFull: number
  /** Refused because of `isOverloaded`. */
  readonly refusedOverloaded: number
}

/**
 * Bounds how much work is under way at once. There is no line to wait in: what does not fit is refused at once, so a
 * process under too much load answers quickly, and takes work again as soon as some is done.
 */
export class InFlight {
  readonly #most: number
  readonly #isOverloaded: () => boolean
  #current = 0
  #peak = 0
  #entered = 0
  #refusedFull = 0
  #refusedOverloaded = 0

  constructor(options: InFlightOptions) {
    this.#most = requireInteger('most', options.most, { min: 1, max: Number.MAX_SAFE_INTEGER })
    this.#isOverloaded = options.isOverloaded ?? (() => false)
  }

  /** Whether work may begin. After true, {@link InFlight.leave} must be called once, however the work ends. */
  tryEnter(): boolean {
    if (this.#current >= this.#most) {
      this.#refusedFull++
      return false
    }
    if (this.#isOverloaded()) {
      this.#refusedOverloaded++
      return false
    }
    this.#current++
    this.#entered++
    if (this.#current > this.#peak) this.#peak = this.#current
    return true
  }

  /** Says that work that was let in has ended. Throws `SLUICE_RUNTIME_INVALID_OPTION` when none is under way. */
  leave(): void {
    if (this.#current === 0) {
      throw new RuntimeError('SLUICE_RUNTIME_INVALID_OPTION', {
        received: 'leave() with nothing under way',
        expected: 'one leave() for each tryEnter() that was true',
        action: 'Call leave() in one place only, such as a finally block that tryEnter() stands before.',
      })
    }
    this.#current--
  }

  /** What is under way and what was refused so far. */
  counts(): InFlightCounts {
    return {
      current: this.#current,
      peak: this.#peak,
      entered: this.#entered,
      refusedFull: this.#refusedFull,
      refusedOverloaded: this.#refusedOverloaded,
    }
  }
}
