import { requireInteger } from '../option-range.ts'
import { RuntimeError } from '../runtime-error.ts'

/** Options of {@link InFlight}. */
export interface InFlightOptions {
  /** Maximum number of concurrent operations; 1 or more. */
  readonly most: number
  /**
   * Rejects everything while it returns true: usually `isLate` of a {@link LagGuard}. Not called if the limit is
   * reached.
   */
  readonly isOverloaded?: (() => boolean) | undefined
}

/** Operations in flight and rejected. */
export interface InFlightCounts {
  /** In flight now. */
  readonly current: number
  /** Highest number in flight so far. */
  readonly peak: number
  /** Admitted so far. */
  readonly entered: number
  /** Rejected because the limit was reached. */
  readonly refusedFull: number
  /** Rejected because of `isOverloaded`. */
  readonly refusedOverloaded: number
}

/**
 * Limits the number of concurrent operations. There is no queue: excess work is rejected immediately, so an overloaded
 * process replies quickly, and accepts work again as soon as some is done.
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

  /** Whether work may start. After true, {@link InFlight.leave} must be called exactly once, however the work ends. */
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

  /** Ends an admitted operation. Throws `SLUICE_RUNTIME_INVALID_OPTION` if none is in flight. */
  leave(): void {
    if (this.#current === 0) {
      throw new RuntimeError('SLUICE_RUNTIME_INVALID_OPTION', {
        received: 'leave() with nothing in flight',
        expected: 'one leave() for each tryEnter() that was true',
        action: 'Call leave() in one place only, such as a finally block after tryEnter().',
      })
    }
    this.#current--
  }

  /** Operations in flight and rejected. */
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
