import type { Timers } from '@sluice/core'
import type { PendingBatch } from '@sluice/core/internal'
import type { BatchGroup, DecideCall } from './call-builder.ts'
import { CallBuilder, groupsIn, singleCall } from './call-builder.ts'
import type { DecideReply } from './decide-call.ts'

/** Maximum size of one call. A script blocks the server while it runs: here for about 0.3 ms. */
const MAX_CALL_SIZE = 128

/**
 * Fewer batches do not justify a call of their own while another is in flight, or before the event loop iteration ends.
 */
const MIN_BATCHES = 32

/** The same, as long as it is unknown whether callers come back in such numbers. */
const MIN_BATCHES_AT_FIRST = 64

/** If at most this many batches were open recently, the first one of an event loop iteration is sent at once. */
const MAX_OPEN_WHEN_IDLE = 8

/** Maximum time that batches wait for an in-flight call, or for more batches to fill a call. */
const MAX_WAIT_MS = 1

/**
 * This many calls keep Redis busy: it executes one while the next waits. Collecting what comes after that makes fewer
 * and larger calls, and this process handles replies while Redis executes, instead of both waiting for each other.
 */
const STEADY_CALLS = 2

/** When the network is slower than Redis, another call may leave after this time, up to {@link MAX_CALLS}. */
const SLOW_NETWORK_MS = 0.3
const MAX_CALLS = 64

/** At {@link MAX_CALLS}, one more may leave after this time: sending is how a hanging connection is detected. */
const HANGING_MS = 1000

/** Options of a {@link CallScheduler}. */
export interface CallSchedulerOptions {
  /** Whether every key needs a call of its own. Such calls are never held back, because they go to different nodes. */
  readonly isCluster: boolean
  /** Whether the client writes calls at the end of the event loop iteration instead of at once. */
  readonly writesLater: boolean
  readonly monotonicMs: () => number
  /** Runs a callback in this iteration of the event loop, after the callbacks of all input. */
  readonly runAfterIo: (run: () => void) => void
  readonly timers: Timers
  readonly call: (call: DecideCall) => Promise<DecideReply>
  readonly answered: (call: DecideCall, reply: DecideReply) => void
  readonly failed: (call: DecideCall, error: unknown) => void
}

/**
 * Decides when batches leave, and in which calls. On an idle connection, the first batch leaves at once, and the others
 * leave at the end of their event loop iteration. While calls are in flight, batches collect, and leave at the end of
 * the iteration in which the next reply arrives, or after a millisecond.
 */
export class CallScheduler {
  readonly #options: CallSchedulerOptions
  #builder = new CallBuilder()
  /** Batches in the builder. */
  #collected = 0
  /** Batches without a reply, and their recent maximum. */
  #open = 0
  #maxOpen = 0
  /** Calls that are built and not sent yet. */
  #waiting: DecideCall[] = []
  #inFlight = 0
  /** Replies that are not delivered yet. */
  readonly #replies: { readonly call: DecideCall; readonly reply: DecideReply }[] = []
  /** Whether a reply is being delivered, and the code that waited for it has not run yet. */
  #isDelivering = false
  #lastSentMs = 0
  #cancelWake: (() => void) | undefined
  #isFlushScheduled = false
  /** Whether a batch that left at once, because the connection was idle, is in flight. */
  #isFirstInFlight = false
  /**
   * Whether no other call was in flight when the first batch was collected; and whether such a collection is being
   * sent.
   */
  #beganIdle = false
  #isFlushingIdle = false
  readonly #flush = (): void => {
    this.#isFlushScheduled = false
    this.#isFlushingIdle = this.#beganIdle
    this.#send()
    this.#isFlushingIdle = false
    if (!this.#options.writesLater) this.#deliver()
  }

  constructor(options: CallSchedulerOptions) {
    this.#options = options
  }

  add(pending: PendingBatch): void {
    if (this.#isIdle()) {
      this.#open++
      this.#isFirstInFlight = true
      void this.#execute(singleCall(pending))
      return
    }
    this.#scheduleFlush()
    this.#builder.add(pending)
    this.#collected++
    this.#open++
    // A good call does not wait for the end of the iteration.
    if (this.#inFlight < STEADY_CALLS && this.#isGoodCall()) this.#send()
  }

  /** Adds batches that were sent before and could not be decided. */
  addAgain(group: BatchGroup): void {
    this.#scheduleFlush()
    this.#builder.addGroup(group)
    this.#collected += group.size
    this.#open += group.size
  }

  /** Rejects all batches that were not sent. */
  close(error: unknown): void {
    for (const call of [...this.#waiting, ...this.#builder.build(MAX_CALL_SIZE)]) this.#options.failed(call, error)
    this.#waiting = []
    this.#builder = new CallBuilder()
    this.#cancelWake?.()
  }

  /** Whether nothing is in flight or waiting, and callers were few recently: then a batch leaves alone, at once. */
  #isIdle(): boolean {
    return (
      this.#inFlight === 0 &&
      !this.#isFlushScheduled &&
      this.#maxOpen <= MAX_OPEN_WHEN_IDLE &&
      this.#waiting.length === 0 &&
      this.#builder.size === 0
    )
  }

  #scheduleFlush(): void {
    if (this.#isFlushScheduled) return
    this.#isFlushScheduled = true
    this.#beganIdle = this.#inFlight === (this.#isFirstInFlight ? 1 : 0)
    this.#options.runAfterIo(this.#flush)
  }

  /**
   * Whether the collected batches make a good call: a full one, or half of the recent maximum of open batches. Callers
   * that check again after each reply then come in two halves: Redis decides one while this process handles the other.
   */
  #isGoodCall(): boolean {
    const least = this.#maxOpen < MIN_BATCHES ? MIN_BATCHES_AT_FIRST : Math.max(MIN_BATCHES, this.#maxOpen / 2)
    return this.#builder.size >= MAX_CALL_SIZE || this.#collected >= least
  }

  /** Sends as many calls as may leave now. */
  #send(): void {
    while (this.#waiting.length > 0 || this.#builder.size > 0) {
      if (!this.#maySend()) {
        this.#wakeLater()
        return
      }
      if (this.#waiting.length === 0) {
        this.#waiting = this.#options.isCluster ? this.#builder.buildByKey() : this.#builder.build(MAX_CALL_SIZE)
        this.#builder = new CallBuilder()
        this.#collected = 0
      }
      const call = this.#withoutAbandoned(this.#waiting.shift()!)
      if (call !== undefined) void this.#execute(call)
    }
  }

  /** Tries again later: without it, nothing would happen until the next reply, which may take long. */
  #wakeLater(): void {
    if (this.#cancelWake !== undefined) return
    const delayMs = this.#inFlight < MAX_CALLS ? MAX_WAIT_MS : HANGING_MS
    this.#cancelWake = this.#options.timers.schedule(delayMs, () => {
      this.#cancelWake = undefined
      this.#send()
    })
  }

  #maySend(): boolean {
    if (this.#inFlight === 0 || this.#isFlushingIdle || this.#options.isCluster) return true
    if (this.#inFlight >= MAX_CALLS) return this.#sentBefore(HANGING_MS)
    // Holding back full calls does not make them fewer.
    if (this.#waiting.length > 1 || this.#builder.size >= MAX_CALL_SIZE) return true
    if (this.#inFlight >= STEADY_CALLS) return this.#sentBefore(SLOW_NETWORK_MS)
    // With few callers there is nothing to wait for.
    const isFew = this.#maxOpen < MIN_BATCHES
    return isFew || this.#waiting.length > 0 || this.#isGoodCall() || this.#sentBefore(MAX_WAIT_MS)
  }

  /** Whether the last call was sent at least `ms` milliseconds ago. */
  #sentBefore(ms: number): boolean {
    return this.#options.monotonicMs() - this.#lastSentMs >= ms
  }

  /** Sends one call. Never rejects. */
  async #execute(call: DecideCall): Promise<void> {
    for (const group of groupsIn(call)) group.markSent()
    this.#inFlight++
    this.#lastSentMs = this.#options.monotonicMs()
    let reply: DecideReply
    try {
      reply = await this.#options.call(call)
    } catch (error) {
      this.#noteEnd(call)
      this.#options.failed(call, error)
      this.#send()
      return
    }
    this.#noteEnd(call)
    this.#replies.push({ call, reply })
    if (this.#builder.size === 0 && this.#waiting.length === 0) this.#deliver()
    else this.#deliverAfterSending()
  }

  /**
   * Delivers replies at the end of this iteration, after the collected batches were sent: while Redis is busy with
   * them. A client that writes at the end of the iteration must get its call earlier, and writes first.
   */
  #deliverAfterSending(): void {
    if (this.#options.writesLater) {
      this.#send()
      this.#options.runAfterIo(() => this.#deliver())
    } else {
      this.#scheduleFlush()
    }
  }

  /** The call without abandoned batches, which must not be charged. Undefined when none is left. */
  #withoutAbandoned(call: DecideCall): DecideCall | undefined {
    if (!groupsIn(call).some((group) => group.hasAbandoned)) return call
    const before = batchesIn(call)
    const bulkChecks = call.bulkChecks
      .map((check) => ({ ...check, groups: check.groups.filter((group) => group.dropAbandoned()) }))
      .filter((check) => check.groups.length > 0)
    const wanted = { bulkChecks, groups: call.groups.filter((group) => group.dropAbandoned()) }
    const left = batchesIn(wanted)
    this.#open -= before - left
    return left > 0 ? wanted : undefined
  }

  #noteEnd(call: DecideCall): void {
    this.#inFlight--
    this.#isFirstInFlight = false
    this.#maxOpen = Math.max(this.#open, this.#maxOpen - this.#maxOpen / 64)
    this.#open -= batchesIn(call)
  }

  /**
   * Delivers replies one after another. Callers often check again at once: if that makes a good call, it leaves before
   * the next reply is delivered, so that Redis and this process work at the same time.
   */
  #deliver(): void {
    if (this.#isDelivering) return
    const next = this.#replies.shift()
    if (next === undefined) return
    this.#isDelivering = true
    try {
      this.#options.answered(next.call, next.reply)
    } finally {
      void Promise.resolve().then(() => {
        this.#isDelivering = false
        this.#deliver()
      })
    }
  }
}

function batchesIn(call: DecideCall): number {
  let count = 0
  for (const group of groupsIn(call)) count += group.size
  return count
}
