import type { Clock, Random, Timers } from '@sluice/core'
import { SluiceError } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import { Backoff } from '../retry-backoff.ts'

/** Hints within this time cause one poll. */
const GATHER_MS = 50

/** Delay after the first failure, before jitter. It doubles with every further failure, up to the poll interval. */
const RETRY_MS = 200

/** Polls start up to this fraction of the interval early, so that nodes that started together spread out. */
const POLL_JITTER = 0.2

const TWO_TO_32 = 4_294_967_296

/** Options of {@link Poller}. */
export interface PollerOptions {
  /** Polls once. Calls never overlap. Must not throw. */
  readonly poll: () => Promise<PollResult>
  readonly pollMs: number
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
}

/** The result of one poll. */
export interface PollResult {
  /** False if the poll must be retried soon. */
  readonly isDone: boolean
  /** Rejects the callers of `now()`. Undefined on success. */
  readonly error: unknown
}

/**
 * Schedules polls for changes: soon after a hint, after the poll interval without one, and after a failure with
 * exponential backoff. One poll at a time.
 */
export class Poller {
  readonly #options: PollerOptions
  readonly #backoff: Backoff
  #next: PromiseWithResolvers<void> | undefined
  /** Whether a caller of `now()` awaits the next poll, not only a hint. */
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

  /** Polls made because the interval had elapsed. */
  get polls(): number {
    return this.#polls
  }

  /**
   * Polls now, or right after the poll in progress, which may have missed what the caller knows of. Rejects with the
   * error of the poll.
   */
  now(): Promise<void> {
    if (this.#isClosed) return Promise.reject(closed())
    const { promise } = this.#another()
    if (this.#isPolling) this.#isAwaited = true
    else this.#begin()
    return promise
  }

  /** Something may have changed: polls soon. */
  hint(): void {
    if (this.#isClosed) return
    if (this.#isPolling) this.#another()
    else this.#wait(this.#soonMs(), () => this.#begin())
  }

  /** Starts no further poll. Resolves when the one in progress has ended. */
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
      // The promise of a hint is not awaited.
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
      // Callers that came in meanwhile would get the same error.
      this.#next?.reject(result.error)
      this.#next = undefined
    }
    if (this.#isClosed) return
    // A caller waits: do not depend on a timer that does not keep the process alive.
    if (this.#next !== undefined && this.#isAwaited) this.#begin()
    else if (this.#next !== undefined) this.#wait(this.#soonMs(), () => this.#begin())
    else if (result.isDone) this.#wait(this.#pollMs(), () => this.#poll())
    else this.#wait(this.#backoff.nextMs(), () => this.#begin())
  }

  #poll(): void {
    this.#polls++
    this.#begin()
  }

  /** Keeps the earlier of two timers. */
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

  /** Hints must not cause polls in quick succession, nor hammer a failing source. */
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

/** Throws `SLUICE_INVALID_OPTION` for an invalid poll interval. */
export function checkPollMs(pollMs: number | undefined): void {
  if (pollMs === undefined || (pollMs > 0 && Number.isFinite(pollMs))) return
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'the poll interval is invalid',
    received: pollMs,
    expected: 'a number of milliseconds above 0',
  })
}

function closed(): SluiceError {
  return new SluiceError('SLUICE_CLOSED', { problem: 'the follower is closed' })
}
