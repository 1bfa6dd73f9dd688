import type { Timers } from '../../system/clock-and-timers.ts'

/** A call that waits for an answer, and its position in the queue. */
export interface WaitingCall {
  /** When it was sent, in milliseconds of the queue's clock. Written by the queue, like its neighbours. */
  sentMs: number
  older: WaitingCall | undefined
  newer: WaitingCall | undefined
  /** Called once at the deadline, after it has left the queue. */
  expire(nowMs: number): void
}

/** Dependencies of a {@link DeadlineQueue}. */
export interface DeadlineParts {
  readonly deadlineMs: number
  readonly timers: Timers
  readonly monotonicMs: () => number
}

/** If a timer fires this late, the thread was busy, and replies may have arrived but not been read yet. */
const BUSY_MS = 5

/**
 * Calls in flight, oldest first. All deadlines have the same length, so the oldest call expires next and one timer is
 * enough. The timer stays set when its call is answered, because the next deadline is usually close: an idle queue
 * holds a timer for one deadline at most.
 */
export class DeadlineQueue {
  readonly #parts: DeadlineParts
  #oldest: WaitingCall | undefined
  #newest: WaitingCall | undefined
  #size = 0
  #cancelTimer: (() => void) | undefined

  constructor(parts: DeadlineParts) {
    this.#parts = parts
  }

  /** Calls in the queue. */
  get size(): number {
    return this.#size
  }

  add(call: WaitingCall, nowMs: number): void {
    call.sentMs = nowMs
    call.older = this.#newest
    if (this.#newest === undefined) this.#oldest = call
    else this.#newest.newer = call
    this.#newest = call
    this.#size++
    if (this.#cancelTimer === undefined) this.#setTimer(this.#parts.deadlineMs)
  }

  /** Removes a call that is in the queue. */
  remove(call: WaitingCall): void {
    if (call.older === undefined) this.#oldest = call.newer
    else call.older.newer = call.newer
    if (call.newer === undefined) this.#newest = call.older
    else call.newer.older = call.older
    // Otherwise a call that hangs forever would hold back all later ones.
    call.older = undefined
    call.newer = undefined
    this.#size--
  }

  /** Removes and returns the oldest call, if there is one. */
  shift(): WaitingCall | undefined {
    const call = this.#oldest
    if (call !== undefined) this.remove(call)
    return call
  }

  /** Cancels the timer. */
  close(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
  }

  #setTimer(delayMs: number): void {
    this.#cancelTimer = this.#parts.timers.schedule(delayMs, () => this.#look())
  }

  #look(): void {
    this.#cancelTimer = undefined
    if (this.#oldest === undefined) return
    const lateMs = this.#parts.monotonicMs() - this.#oldest.sentMs - this.#parts.deadlineMs
    if (lateMs < BUSY_MS) this.#expire()
    else this.#cancelTimer = this.#parts.timers.schedule(0, () => this.#expire())
  }

  #expire(): void {
    this.#cancelTimer = undefined
    const nowMs = this.#parts.monotonicMs()
    const { deadlineMs } = this.#parts
    while (this.#oldest !== undefined && this.#oldest.sentMs + deadlineMs <= nowMs) this.shift()?.expire(nowMs)
    if (this.#oldest !== undefined && this.#cancelTimer === undefined)
      this.#setTimer(Math.max(0, this.#oldest.sentMs + deadlineMs - nowMs))
  }
}
