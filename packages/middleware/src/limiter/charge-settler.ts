import type { Timers } from '@sluice/core'
import type { MaybePromise } from '../http/maybe-promise.ts'
import { isPromise } from '../http/maybe-promise.ts'
import type { RateLimitOptions } from '../options/rate-limit-options.ts'
import type { Charge, Settlement } from './checker.ts'

/** Renewals per lease: one may be lost and one may be late. */
const RENEWALS_PER_LEASE = 3

/** How charges are settled. */
export interface ChargeSettlerOptions<Context> {
  readonly refund: RateLimitOptions<Context>['refund']
  readonly actualCost: RateLimitOptions<Context>['actualCost']
  readonly timers: Timers
  /** Called with failures after the response. */
  readonly onError: (error: unknown, context: Context) => void
}

/** Settles charges when their requests complete, and renews their slots until then. */
export class ChargeSettler<Context> {
  readonly #isRefunded: ((status: number, context: Context) => boolean) | undefined
  readonly #actualCost: RateLimitOptions<Context>['actualCost']
  readonly #timers: Timers
  readonly #onError: (error: unknown, context: Context) => void
  /** Whether the completion of every request matters. */
  readonly #needsCompletion: boolean

  constructor({ refund, actualCost, timers, onError }: ChargeSettlerOptions<Context>) {
    this.#isRefunded = typeof refund === 'object' ? statusTest(refund) : refund
    this.#actualCost = actualCost
    this.#timers = timers
    this.#onError = onError
    this.#needsCompletion = refund !== undefined || actualCost !== undefined
  }

  /**
   * Returns the function to call when the request completes, with the response status or 0. Undefined if completion
   * does not matter. Idempotent, never throws.
   */
  watch(charge: Charge, context: Context): ((status: number) => void) | undefined {
    if (!(this.#needsCompletion || charge.isHeld) && charge.report === undefined) return undefined
    const stopRenewing = charge.leaseMs > 0 ? this.#keepRenewing(charge, context) : undefined
    let isOver = false
    return (status) => {
      if (isOver) return
      isOver = true
      stopRenewing?.()
      this.#attempt(() => charge.report?.(status), context)
      const settlement = this.#settlementOf(context, status)
      if (settlement !== 'keep' || charge.isHeld) this.#attempt(() => charge.end(settlement), context)
    }
  }

  #settlementOf(context: Context, status: number): Settlement {
    try {
      if (this.#isRefunded?.(status, context) === true) return 'refund'
      return this.#actualCost?.(context, status) ?? 'keep'
    } catch (error) {
      // Whatever the option did, a slot must not stay taken.
      this.#onError(error, context)
      return 'keep'
    }
  }

  /** Renews slots until the returned function is called. */
  #keepRenewing(charge: Charge, context: Context): () => void {
    let cancel: () => void
    const arm = (): void => {
      cancel = this.#timers.schedule(charge.leaseMs / RENEWALS_PER_LEASE, () => {
        arm()
        this.#attempt(() => charge.renew?.(), context)
      })
    }
    arm()
    return () => cancel()
  }

  #attempt(act: () => MaybePromise<unknown>, context: Context): void {
    try {
      const done = act()
      if (isPromise(done)) done.catch((error: unknown) => this.#onError(error, context))
    } catch (error) {
      this.#onError(error, context)
    }
  }
}

function statusTest(statuses: readonly number[]): (status: number) => boolean {
  const refunded = new Set(statuses)
  return (status) => refunded.has(status)
}

/**
 * Emits a process warning, or writes to the console, for the first failure only: an unavailable store would flood the
 * log.
 */
export function warnOnce(): (error: unknown) => void {
  let isTold = false
  return (error) => {
    if (isTold) return
    isTold = true
    const text =
      `A charge could not be corrected after its request: ${String(error)} Further ones are passed to ` +
      '"onError" only.'
    if (typeof process !== 'undefined' && typeof process.emitWarning === 'function') {
      process.emitWarning(text, { type: 'SluiceWarning' })
      return
    }
    // biome-ignore lint/suspicious/noConsole: runtimes other than Node have nothing else to warn by
    console.warn(text)
  }
}
