import type { NowMs, Sleep } from '@sluice/runtime/portable'
import { ClientError } from '../errors/client-error.ts'

/** Reason that ends a wait that is no longer needed: a constant, so that it is not created per call. */
const OVER = 'over'

/** What may end a call. */
export interface DeadlineOptions {
  readonly sleep: Sleep
  readonly nowMs: NowMs
  /** The caller's signal, if any. */
  readonly signal: AbortSignal | undefined
}

/**
 * A renewable timeout: `signal` aborts with a `ClientError` when `renew` was not called in time, or with the reason of
 * the caller's signal. Holds no resources after `end`.
 */
export class Deadline {
  readonly #controller = new AbortController()
  readonly #options: DeadlineOptions
  readonly #pass = (): void => this.#controller.abort(this.#options.signal?.reason)
  #wait: AbortController | undefined
  #endsAt = Number.POSITIVE_INFINITY

  constructor(options: DeadlineOptions) {
    this.#options = options
    if (options.signal?.aborted === true) this.#pass()
    else options.signal?.addEventListener('abort', this.#pass, { once: true })
  }

  /** Aborts with the reason that ended the call. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Sets the remaining time to `ms` milliseconds; `waited` says for what, as the rest of a sentence. */
  renew(ms: number, waited: string): void {
    this.pause()
    this.#endsAt = this.#options.nowMs() + ms
    const wait = new AbortController()
    this.#wait = wait
    const expire = (): void => {
      const detail =
        `No answer within ${ms} ms ${waited}. It is unknown whether it was processed: check before ` +
        'you repeat a change.'
      this.#controller.abort(new ClientError('SLUICE_CLIENT_TIMEOUT', { detail }))
    }
    this.#options.sleep(ms, wait.signal).then(expire, () => undefined)
  }

  /** Remaining milliseconds, 0 or more; Infinity while it is paused. */
  leftMs(): number {
    return Math.max(0, this.#endsAt - this.#options.nowMs())
  }

  /** Suspends the timeout until the next `renew`; the signal of the caller still aborts. */
  pause(): void {
    this.#wait?.abort(OVER)
    this.#endsAt = Number.POSITIVE_INFINITY
  }

  end(): void {
    this.pause()
    this.#options.signal?.removeEventListener('abort', this.#pass)
  }
}
