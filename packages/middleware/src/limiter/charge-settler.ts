import type { Timers } from '@sluice/core'
import type { Eventually } from '../http/maybe-promise.ts'
import { isLater } from '../http/maybe-promise.ts'
import type { RateLimitOptions } from '../options/rate-limit-options.ts'
import type { Charge, ChargeFate } from './charge.ts'

/** So many signs of life are given in the time of one lease: one may be lost, one may be late. */
const BEATS_PER_LEASE = 3

/** What the end of charges is made of. */
export interface ChargeEndParts<Context> {
  readonly refund: RateLimitOptions<Context>['refund']
  readonly actualCost: RateLimitOptions<Context>['actualCost']
  readonly timers: Timers
  /** Is told what failed when nobody waits any more. */
  readonly onError: (error: unknown, context: Context) => void
}

/** Ends charges when their requests have ended, and keeps their slots until then. */
export class ChargeEnd<Context> {
  readonly #isRefunded: ((status: number, context: Context) => boolean) | undefined
  readonly #actualCost: RateLimitOptions<Context>['actualCost']
  readonly #timers: Timers
  readonly #onError: (error: unknown, context: Context) => void
  /** Whether the end of every request matters. */
  readonly #isCurious: boolean

  constructor({ refund, actualCost, timers, onError }: ChargeEndParts<Context>) {
    this.#isRefunded = typeof refund === 'object' ? statusTest(refund) : refund
    this.#actualCost = actualCost
    this.#timers = timers
    this.#onError = onError
    this.#isCurious = refund !== undefined || actualCost !== undefined
  }

  /**
   * What to call when the request has ended, with the status of its answer or 0; undefined when that makes no difference. Calling
   * it again does nothing. It does not throw.
   */
  watch(charge: Charge, context: Context): ((status: number) => void) | undefined {
    if (!(this.#isCurious || charge.isHeld) && charge.report === undefined) return undefined
    const stopBeating = charge.leaseMs > 0 ? this.#beat(charge, context) : undefined
    let isOver = false
    return (status) => {
      if (isOver) return
      isOver = true
      stopBeating?.()
      this.#attempt(() => charge.report?.(status), context)
      const fate = this.#fateOf(context, status)
      if (fate !== 'stands' || charge.isHeld) this.#attempt(() => charge.end(fate), context)
    }
  }

  #fateOf(context: Context, status: number): ChargeFate {
    try {
      if (this.#isRefunded?.(status, context) === true) return 'given-back'
      return this.#actualCost?.(context, status) ?? 'stands'
    } catch (error) {
      // Whatever the option did, a slot must not stay taken.
      this.#onError(error, context)
      return 'stands'
    }
  }

  /** Gives signs of life until the returned function is called. */
  #beat(charge: Charge, context: Context): () => void {
    let cancel: () => void
    const arm = (): void => {
      cancel = this.#timers.schedule(charge.leaseMs / BEATS_PER_LEASE, () => {
        arm()
        this.#attempt(() => charge.renew?.(), context)
      })
    }
    arm()
    return () => cancel()
  }

  #attempt(act: () => Eventually<unknown>, context: Context): void {
    try {
      const done = act()
      if (isLater(done)) done.catch((error: unknown) => this.#onError(error, context))
    } catch (error) {
      this.#onError(error, context)
    }
  }
}

function statusTest(statuses: readonly number[]): (status: number) => boolean {
  const refunded = new Set(statuses)
  return (status) => refunded.has(status)
}

/** Tells the process, or the console where there is none, of the first failure; a store that is away would fill the screen. */
export function onceToProcess(): (error: unknown) => void {
  let isTold = false
  return (error) => {
    if (isTold) return
    isTold = true
    const text = `A charge could not be corrected after its request: ${String(error)} Further ones are told to "onError" only.`
    if (typeof process !== 'undefined' && typeof process.emitWarning === 'function') {
      process.emitWarning(text, { type: 'SluiceWarning' })
      return
    }
    // biome-ignore lint/suspicious/noConsole: runtimes other than Node have nothing else to warn by
    console.warn(text)
  }
}
