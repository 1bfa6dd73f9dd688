import { isSluiceError } from '../../errors.ts'
import { failureOf, isPartialFailure, type StoreFailure } from '../store-error.ts'
import { type StoreObserver, tell } from '../store-event.ts'
import { type Breaker, NOT_ADMITTED } from './breaker.ts'
import { type DeadlineParts, DeadlineQueue, type WaitingCall } from './deadline-queue.ts'

/** What {@link GuardedCalls} work with. */
export interface GuardedParts extends DeadlineParts {
  readonly breaker: Breaker
  /** Most calls in flight. */
  readonly maxPending: number
  readonly observe: StoreObserver | undefined
  /** Called with the first call: all calls wait until it resolves. It never rejects. */
  readonly untilStarted?: (() => Promise<void>) | undefined
}

/**
 * One call to a store, made once. Exactly one of `deliver`, `failed` and `givenUp` is called, within the deadline; after
 * `failed` or `givenUp`, an answer that still comes goes to `late`.
 *
 * What the line and the guard note about a call stands in the call itself: there are very many of them. So it is an interface,
 * too: making an object of a derived class takes twice as long.
 */
export interface GuardedCall<T> extends WaitingCall {
  ended: boolean
  ticket: number
  /** Who is to be told how it ended, by `answer` or `reject`, at once or later. Written before it is started. */
  calls: GuardedCalls | undefined
  /** Whether the store may have got it: false when it would be given up in time. */
  readonly hasLeft: boolean

  /** Makes the call. */
  start(): void
  deliver(value: T): void
  /** There is no usable answer. `error` is the store's, if it gave one. */
  failed(failure: StoreFailure, error: unknown): void
  /** The caller made a mistake, or closed the store: the error is for the caller. */
  givenUp(error: unknown): void
  late(value: T): void
}

/**
 * Calls to a store, each ended by its deadline, none made while the breaker is open, so many at once and no more. Calls made
 * while the store is starting wait for that; their deadline begins afterwards.
 */
export class GuardedCalls {
  readonly #parts: GuardedParts
  readonly #queue: DeadlineQueue
  /** Calls that wait until the store has started; undefined when it has. */
  #held: GuardedCall<unknown>[] | undefined
  #asked = 0
  #complaint: string | undefined
  #failed = 0

  constructor(parts: GuardedParts) {
    this.#parts = parts
    this.#queue = new DeadlineQueue(parts)
    this.#held = parts.untilStarted === undefined ? undefined : []
  }

  /** What the store said when it failed last; undefined when it has answered since, or said nothing. */
  get complaint(): string | undefined {
    return this.#complaint
  }

  /** Calls that were made, and those that got no usable answer; calls in flight. */
  stats(): { readonly asked: number; readonly failed: number; readonly pending: number } {
    return { asked: this.#asked, failed: this.#failed, pending: this.#queue.size + (this.#held?.length ?? 0) }
  }

  /** Makes a call, or fails it at once. Never throws; the call is made once at most. */
  send<T>(call: GuardedCall<T>): void {
    if (this.#held !== undefined) {
      this.#hold(call as GuardedCall<unknown>, this.#held)
      return
    }
    const { breaker, maxPending, monotonicMs } = this.#parts
    const nowMs = monotonicMs()
    if (this.#queue.size >= maxPending) {
      this.#fail(call, { cause: 'deadline', charged: 'no' }, undefined)
      return
    }
    const ticket = breaker.admit(nowMs)
    if (ticket === NOT_ADMITTED) {
      this.#fail(call, { cause: 'breaker', charged: 'no' }, undefined)
      return
    }
    this.#asked++
    call.ticket = ticket
    call.calls = this
    this.#queue.add(call, nowMs)
    try {
      call.start()
    } catch (error) {
      // A store that throws instead of rejecting is no different.
      this.reject(call, error)
    }
  }

  #hold(call: GuardedCall<unknown>, held: GuardedCall<unknown>[]): void {
    if (held.length >= this.#parts.maxPending) {
      this.#fail(call, { cause: 'deadline', charged: 'no' }, undefined)
      return
    }
    held.push(call)
    if (held.length === 1) void this.#parts.untilStarted?.().then(() => this.#release())
  }

  /** The store has started: makes the calls that waited for it, in their order. */
  #release(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const call of held) this.send(call)
  }

  /** Gives all calls in flight up. */
  close(error: unknown): void {
    for (const call of this.#held ?? []) call.givenUp(error)
    this.#held = undefined
    this.#queue.close()
    for (let waiting = this.#queue.shift(); waiting !== undefined; waiting = this.#queue.shift()) {
      const call = waiting as GuardedCall<unknown>
      call.ended = true
      call.givenUp(error)
    }
  }

  /** The deadline of a call in flight has come. */
  expire(call: GuardedCall<unknown>, nowMs: number): void {
    call.ended = true
    this.#tellAsked(call.sentMs, 'failed')
    this.#failed++
    this.#parts.breaker.failed(call.ticket, nowMs)
    this.#fail(call, { cause: 'deadline', charged: call.hasLeft ? 'unknown' : 'no' }, undefined)
  }

  /** A call in flight was answered, or one that has ended. */
  answer<T>(call: GuardedCall<T>, value: T): void {
    if (call.ended) {
      call.late(value)
      return
    }
    call.ended = true
    this.#queue.remove(call)
    // As of when it was sent, which saves reading the clock again and is at most one deadline ago.
    this.#parts.breaker.succeeded(call.ticket, call.sentMs)
    this.#complaint = undefined
    this.#tellAsked(call.sentMs, 'answered')
    call.deliver(value)
  }

  /** A call in flight was rejected, or one that has ended. */
  reject(call: GuardedCall<unknown>, error: unknown): void {
    if (call.ended) return
    call.ended = true
    this.#queue.remove(call)
    const failure = failureOf(error)
    this.#tellAsked(call.sentMs, failure === undefined ? 'misused' : 'failed')
    if (failure === undefined) {
      this.#parts.breaker.withdrawn(call.ticket)
      call.givenUp(error)
      return
    }
    this.#failed++
    if (isSluiceError(error)) this.#complaint = error.message
    if (isPartialFailure(error)) this.#parts.breaker.withdrawn(call.ticket)
    else this.#parts.breaker.failed(call.ticket, this.#parts.monotonicMs())
    this.#fail(call, failure, error)
  }

  #fail(call: GuardedCall<unknown>, failure: StoreFailure, error: unknown): void {
    if (this.#parts.observe !== undefined) tell(this.#parts.observe, { type: 'failed', ...failure, error })
    call.failed(failure, error)
  }

  #tellAsked(sentMs: number, outcome: 'answered' | 'failed' | 'misused'): void {
    const { observe, monotonicMs } = this.#parts
    if (observe === undefined) return
    tell(observe, { type: 'asked', micros: Math.round((monotonicMs() - sentMs) * 1000), outcome })
  }
}
