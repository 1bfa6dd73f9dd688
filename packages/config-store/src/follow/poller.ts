import type { Clock, Random, Timers } from '@sluice/core'
import { SluiceError } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import { Backoff } from '../retry-backoff.ts'

/** Hints within this time lead to one look. */
const GATHER_MS = 50

/** Wait after the first failure, before jitter; each further one doubles it, up to the poll interval. */
const RETRY_MS = 200

/** Polls come up to so much sooner than asked for, so that nodes that started together do not stay together. */
const POLL_JITTER = 0.2

const TWO_TO_32 = 4_294_967_296

/** What a {@link Poller} needs. */
export interface PollerOptions {
  /** One look; it is never begun while another one is under way. Must not throw. */
  readonly poll: () => Promise<PollResult>
  readonly pollMs: number
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
}

/** How a look ended. */
export interface PollResult {
  /** False when it has to be tried again soon. */
  readonly isDone: boolean
  /** What those who asked for the look are told; undefined when all is well. */
  readonly error: unknown
}

/**
 * When to look whether something has changed: soon after a hint, after the poll interval without one, and after a failure
 * again and again, at growing distances. One look at a time.
 */
export class Poller {
  readonly #options: PollerOptions
  readonly #backoff: Backoff
  #next: PromiseWithResolvers<void> | undefined
  /** Whether somebody waits for the next look, and not only a hint asks for it. */
  #isAwaited = false
  #isPolling = false
  #polling: Promise<void> = Promise.resolve()
  #isFailing = false
  #beganMs = 0
  #endedMs = 0
  #dueMs = Number.POSITIVE_INFINITY
  #cancelTimer: (() => void) | undefined
  #isClosed = false
  #polls = 0

  constructor(options: PollerOptions) {
    const { pollMs, random } = options
    this.#options = options
    this.#backoff = new Backoff({ firstMs: Math.min(RETRY_MS, pollMs), longestMs: pollMs, random })
  }

  /** Looks made because the poll interval was over. */
  get polls(): number {
    return this.#polls
  }

  /**
   * Looks now, or right after the look under way, which may have missed what the caller knows of. Rejects with the error of the
   * look.
   */
  now(): Promise<void> {
    if (this.#isClosed) return Promise.reject(closed())
    const { promise } = this.#another()
    if (this.#isPolling) this.#isAwaited = true
    else this.#begin()
    return promise
  }

  /** Something may have changed: looks soon. */
  hint(): void {
    if (this.#isClosed) return
    if (this.#isPolling) this.#another()
    else this.#wait(this.#soonMs(), () => this.#begin())
  }

  /** No look begins any more. Resolves when the one under way has ended. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#stop()
    this.#next?.reject(closed())
    this.#next = undefined
    await this.#polling
  }

  #another(): PromiseWithResolvers<void> {
    if (this.#next === undefined) {
      this.#next = Promise.withResolvers<void>()
      // Hints wait for nothing.
      this.#next.promise.catch(() => undefined)
    }
    return this.#next
  }

  #begin(): void {
    this.#stop()
    this.#isPolling = true
    this.#beganMs = this.#nowMs()
    const asked = this.#next
    this.#next = undefined
    this.#isAwaited = false
    this.#polling = this.#options.poll().then((result) => this.#end(result, asked))
  }

  #end(result: PollResult, asked: PromiseWithResolvers<void> | undefined): void {
    this.#isPolling = false
    this.#endedMs = this.#nowMs()
    this.#isFailing = !result.isDone
    if (result.error === undefined) asked?.resolve()
    else asked?.reject(result.error)
    if (result.isDone) this.#backoff.reset()
    else {
      // Who asked meanwhile would hear the same.
      this.#next?.reject(result.error)
      this.#next = undefined
    }
    if (this.#isClosed) return
    // Who waits must not depend on a timer that does not keep the process alive.
    if (this.#next !== undefined && this.#isAwaited) this.#begin()
    else if (this.#next !== undefined) this.#wait(this.#soonMs(), () => this.#begin())
    else if (result.isDone) this.#wait(this.#pollMs(), () => this.#poll())
    else this.#wait(this.#backoff.nextMs(), () => this.#begin())
  }

  #poll(): void {
    this.#polls++
    this.#begin()
  }

  /** Keeps the sooner of two waits. */
  #wait(delayMs: number, run: () => void): void {
    const dueMs = this.#nowMs() + delayMs
    if (dueMs >= this.#dueMs) return
    this.#stop()
    this.#dueMs = dueMs
    this.#cancelTimer = this.#options.timers.schedule(delayMs, run)
  }

  #stop(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#dueMs = Number.POSITIVE_INFINITY
  }

  /** Hints neither make looks crowd, nor hammer at a source that fails. */
  #soonMs(): number {
    const notBeforeMs = this.#isFailing ? this.#endedMs + RETRY_MS : this.#beganMs + GATHER_MS
    return Math.max(0, notBeforeMs - this.#nowMs())
  }

  #pollMs(): number {
    const { pollMs, random } = this.#options
    return pollMs * (1 - (POLL_JITTER * random.nextUint32()) / TWO_TO_32)
  }

  #nowMs(): number {
    return this.#options.clock.nowMicros() / MICROS_PER_MS
  }
}

/** Throws `SLUICE_INVALID_OPTION` for an interval that looks cannot be made in. */
export function checkPollMs(pollMs: number | undefined): void {
  if (pollMs === undefined || (pollMs > 0 && Number.isFinite(pollMs))) return
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'configuration cannot be polled in this interval',
    received: pollMs,
    expected: 'milliseconds above 0',
  })
}

function closed(): SluiceError {
  return new SluiceError('SLUICE_CLOSED', { problem: 'configuration is not followed any more: it was closed' })
}
