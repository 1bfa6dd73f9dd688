import { isSluiceError, SluiceError } from '../../errors.ts'
import type { Limit } from '../../rule/limit.ts'
import type { FailureMode } from '../../rule/rule.ts'
import { receiptOf } from '../batch.ts'
import { CallbackStore, callbackStore, type PendingBatch } from '../callback-store.ts'
import type { Batch, BlockTerm, Receipt, Settlement, Store } from '../store.ts'
import { failureOf, isPartialFailure, type StoreFailure, storeErrorOf } from '../store-error.ts'
import { type BreakerState, type StoreObserver, tell } from '../store-event.ts'
import { Breaker, NOT_ADMITTED } from './breaker.ts'
import { DeadlineQueue } from './deadline-queue.ts'
import { checkFallbackOptionNames, type FallbackStoreOptions, withDefaults } from './fallback-options.ts'
import { type CallGuard, DecideCall, type GuardedCall, PromiseCall } from './guarded-call.ts'
import { LocalDecisions } from './local-decisions.ts'

/** Statistics of a fallback store. */
export interface FallbackStoreStats {
  /** Calls to the store, and those of them without a usable answer in time. */
  readonly asked: number
  readonly failed: number
  /** Calls in flight now. */
  readonly pending: number
  /** Checks decided without the store, by mode. */
  readonly fellBack: Readonly<Record<FailureMode, number>>
  /** Answers that came too late, and charges among them that were returned. */
  readonly lateAnswers: number
  readonly givenBack: number
}

/**
 * A store that decides every check within a deadline, even if `store` is slow, rejects calls, or is unreachable, and
 * reports that in `failure` of the decision. It retries `store` by itself; nothing is ever sent twice. Settlements,
 * blocks and resets need the store: they fail with `SLUICE_STORE_UNAVAILABLE` (nothing happened) or
 * `SLUICE_OUTCOME_UNKNOWN` (it may have); blocks and resets then apply on this node nevertheless. A charge is settled
 * where it was made. Leases are never granted without the store: requesting one is an error.
 *
 * Closing it closes `store`, and answers the calls in flight with `SLUICE_CLOSED`.
 */
export function fallbackStore(store: Store<'async'>, options: FallbackStoreOptions = {}): FallbackStore {
  checkFallbackOptionNames(options)
  return new FallbackStore(store, options)
}

/** Start-up behaviour for a store of this workspace. */
export interface FallbackStart {
  /** How long failures before the first answer do not count against the breaker. */
  readonly graceMs: number
  /** Calls wait for it, from the first one on. It never rejects. Default: they do not wait. */
  readonly untilStarted?: (() => Promise<void>) | undefined
  /** Whether the parts of the store have their own breakers, so that none is needed here. */
  readonly hasBreakers: boolean
}

/** A {@link fallbackStore} for a store with a start-up phase. */
export function startingFallbackStore(
  store: Store<'async'>,
  options: FallbackStoreOptions,
  start: FallbackStart,
): FallbackStore {
  return new FallbackStore(store, options, start)
}

/** A store that always answers in time. */
export class FallbackStore extends CallbackStore implements CallGuard {
  readonly #store: CallbackStore
  readonly #breaker: Breaker
  readonly #queue: DeadlineQueue
  readonly #urgentQueue: DeadlineQueue
  /** Urgent calls whose callers were answered without the store. The breaker waits until the usual deadline. */
  readonly #overdueQueue: DeadlineQueue
  readonly #local: LocalDecisions
  readonly #observe: StoreObserver | undefined
  readonly #failureMode: FailureMode
  readonly #deadlineMs: number
  readonly #maxPending: number
  readonly #monotonicMs: () => number
  readonly #untilStarted: (() => Promise<void>) | undefined
  /** Calls that wait until the store has started; undefined afterwards. */
  #held: GuardedCall[] | undefined
  /** The message of the last failure; undefined after an answer. */
  #lastError: string | undefined
  #asked = 0
  #failed = 0
  readonly #fellBack: Record<FailureMode, number> = { open: 0, closed: 0, local: 0 }
  #lateAnswers = 0
  #givenBack = 0
  #closing: Promise<void> | undefined

  constructor(store: Store<'async'>, options: FallbackStoreOptions, start?: FallbackStart) {
    super()
    const { observe } = options
    const { deadlineMs, urgentDeadlineMs, monotonicMs, random, timers, breaker, ...rest } = withDefaults(options)
    this.#store = callbackStore(store)
    this.#observe = observe
    this.#failureMode = rest.failureMode
    this.#deadlineMs = deadlineMs
    this.#maxPending = rest.maxPending
    this.#monotonicMs = monotonicMs
    this.#untilStarted = start?.untilStarted
    this.#held = start?.untilStarted === undefined ? undefined : []
    this.#queue = new DeadlineQueue({ deadlineMs, timers, monotonicMs })
    this.#urgentQueue = new DeadlineQueue({ deadlineMs: urgentDeadlineMs, timers, monotonicMs })
    const restMs = Math.max(1, deadlineMs - urgentDeadlineMs)
    this.#overdueQueue = new DeadlineQueue({ deadlineMs: restMs, timers, monotonicMs })
    this.#local = new LocalDecisions({ ...rest, random })
    this.#breaker = new Breaker({
      ...breaker,
      random,
      onChange: (state) => tell(observe, { type: 'breaker', state }),
      neverOpens: start?.hasBreakers ?? false,
      start: start && { atMs: monotonicMs(), graceMs: start.graceMs },
    })
  }

  get state(): BreakerState {
    return this.#breaker.state
  }

  stats(): FallbackStoreStats {
    return {
      asked: this.#asked,
      failed: this.#failed,
      pending: this.#pendingCalls + (this.#held?.filter(({ isQueued }) => !isQueued).length ?? 0),
      fellBack: { ...this.#fellBack },
      lateAnswers: this.#lateAnswers,
      givenBack: this.#givenBack,
    }
  }

  submit(pending: PendingBatch): void {
    // It has its own deadline, so it does not check whether the caller still waits.
    pending.isSent = true
    const queue = pending.batch.isUrgent ? this.#urgentQueue : this.#queue
    if (this.#closing === undefined) this.#send(new DecideCall(this, this.#store, { caller: pending, queue }))
    else pending.fail(closedError())
  }

  settle(receipt: Receipt, actuals: readonly number[]): Promise<Settlement> {
    if (this.#closing !== undefined) return Promise.reject(closedError())
    return new Promise((resolve, reject) => {
      const here = this.#local.settle(receipt, actuals)
      if (here !== undefined) {
        resolve(here)
        return
      }
      const sent = { receipt, actuals, seen: this.#local.seenBefore(receipt) }
      const settled = (settlement: Settlement): void => {
        for (const [index, { limit }] of receipt.charges.entries()) {
          if (this.#modeOf(limit) === 'local') this.#local.noteSettled(index, sent, settlement)
        }
        resolve(settlement)
      }
      const start = (): Promise<Settlement> => this.#store.settle(receipt, actuals)
      this.#send(new PromiseCall(this, this.#queue, { start, resolve: settled, reject }))
    })
  }

  block(rule: string, key: string, term: BlockTerm): Promise<void> {
    return this.#both(
      () => this.#store.block(rule, key, term),
      () => this.#local.block(rule, key, term),
    )
  }

  reset(limits: readonly Limit[], key: string): Promise<void> {
    return this.#both(
      () => this.#store.reset(limits, key),
      () => this.#local.reset(limits, key),
    )
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const error = closedError()
    for (const call of this.#held ?? []) if (!call.isQueued) call.reject(error)
    this.#held = undefined
    for (const queue of [this.#queue, this.#urgentQueue, this.#overdueQueue]) {
      queue.close()
      for (let waiting = queue.shift(); waiting !== undefined; waiting = queue.shift()) {
        const call = waiting as GuardedCall
        if (call.hasEnded) continue
        call.hasEnded = true
        call.abandon()
        call.reject(error)
      }
    }
    try {
      await this.#store.close()
    } finally {
      await this.#local.close()
    }
  }

  /** Changes the store and this node, even if one of them fails: the change may be needed before the store is back. */
  #both(start: () => Promise<void>, changeHere: () => void): Promise<void> {
    if (this.#closing !== undefined) return Promise.reject(closedError())
    return new Promise((resolve, reject) => {
      this.#send(new PromiseCall(this, this.#queue, { start, resolve, reject }))
      changeHere()
    })
  }

  /** Makes a call, or ends it at once. Never throws. */
  #send(call: GuardedCall): void {
    if ((this.#held?.length ?? this.#pendingCalls + this.#overdueQueue.size) >= this.#maxPending) {
      this.#fallBack(call, { cause: 'deadline', charged: 'no' }, undefined)
      return
    }
    if (this.#held !== undefined) {
      this.#hold(call, this.#held)
      return
    }
    this.#make(call)
  }

  /** Makes a call, unless the breaker is open. */
  #make(call: GuardedCall): void {
    const nowMs = this.#monotonicMs()
    call.ticket = this.#breaker.admit(nowMs)
    if (call.ticket === NOT_ADMITTED) {
      if (call.isQueued) call.queue.remove(call)
      call.hasEnded = true
      this.#fallBack(call, { cause: 'breaker', charged: 'no' }, undefined)
      return
    }
    this.#asked++
    if (!call.isQueued) this.#enqueue(call, nowMs)
    try {
      call.start()
    } catch (error) {
      // A store that throws instead of rejecting is no different.
      this.failed(call, error)
    }
  }

  #enqueue(call: GuardedCall, nowMs: number): void {
    call.isQueued = true
    call.queue.add(call, nowMs)
  }

  get #pendingCalls(): number {
    return this.#queue.size + this.#urgentQueue.size
  }

  /** Keeps a call until the store has started. Its deadline begins then; that of an urgent call begins at once. */
  #hold(call: GuardedCall, held: GuardedCall[]): void {
    held.push(call)
    if (call.queue === this.#urgentQueue) this.#enqueue(call, this.#monotonicMs())
    if (held.length > 1) return
    void this.#untilStarted?.().then(() => {
      const calls = this.#held ?? []
      this.#held = undefined
      for (const waiting of calls) if (!waiting.hasEnded) this.#make(waiting)
    })
  }

  answered(call: GuardedCall): boolean {
    if (call.hasEnded) {
      if (this.#leaveOverdue(call)) this.#breaker.succeeded(call.ticket, call.sentMs)
      return false
    }
    call.hasEnded = true
    call.queue.remove(call)
    // As of when it was sent: saves reading the clock again, and is at most one deadline old.
    this.#breaker.succeeded(call.ticket, call.sentMs)
    this.#lastError = undefined
    this.#tellAsked(call, 'answered')
    return true
  }

  failed(call: GuardedCall, error: unknown): void {
    if (call.hasEnded) {
      if (this.#leaveOverdue(call)) this.#breaker.failed(call.ticket, this.#monotonicMs())
      return
    }
    call.hasEnded = true
    call.queue.remove(call)
    const failure = failureOf(error)
    this.#tellAsked(call, failure === undefined ? 'misused' : 'failed')
    if (failure === undefined) {
      this.#breaker.withdrawn(call.ticket)
      call.reject(error)
      return
    }
    this.#failed++
    if (isSluiceError(error)) this.#lastError = error.message
    if (isPartialFailure(error)) this.#breaker.withdrawn(call.ticket)
    else this.#breaker.failed(call.ticket, this.#monotonicMs())
    this.#fallBack(call, failure, error)
  }

  expired(call: GuardedCall, nowMs: number): void {
    if (call.hasEnded) {
      call.isOverdue = false
      this.#breaker.failed(call.ticket, nowMs)
      return
    }
    call.hasEnded = true
    if (call.ticket !== NOT_ADMITTED) {
      this.#tellAsked(call, 'failed')
      this.#failed++
      if (call.queue === this.#urgentQueue) {
        // A store slower than the deadline of urgent calls is not a failure for others.
        call.isOverdue = true
        this.#overdueQueue.add(call, nowMs)
      } else this.#breaker.failed(call.ticket, nowMs)
    }
    call.abandon()
    this.#fallBack(call, { cause: 'deadline', charged: call.isSent ? 'unknown' : 'no' }, undefined)
  }

  /** Whether the breaker still waits for the outcome of a call whose caller has been answered. Stops waiting. */
  #leaveOverdue(call: GuardedCall): boolean {
    if (!call.isOverdue) return false
    call.isOverdue = false
    this.#overdueQueue.remove(call)
    return true
  }

  note(batch: Batch): void {
    const { items } = batch
    for (let index = 0; index < items.length; index++) {
      const item = items[index]!
      if (this.#modeOf(item.limit) === 'local') this.#local.note(item, batch)
    }
  }

  decideWithout(batch: Batch, { cause, charged: mayHaveCharged }: StoreFailure, error: unknown): void {
    const charged = batch.charge ? mayHaveCharged : 'no'
    if (batch.leaseMicros > 0) throw storeErrorOf({ cause, charged }, error)
    const { mode, rule } = this.#strictestModeOf(batch)
    const pauseMs = this.#breaker.pauseLeftMs(this.#monotonicMs())
    this.#local.decide(batch, mode, Math.max(1, pauseMs === 0 ? this.#deadlineMs : pauseMs))
    batch.failure = { mode, cause, charged, detail: this.#lastError }
    this.#fellBack[mode]++
    tell(this.#observe, { type: 'fell-back', mode, rule })
  }

  decidedLate(batch: Batch, wasDenied: boolean): void {
    this.#lateAnswers++
    const { allowed } = batch
    if (allowed && batch.charge && wasDenied) void this.#giveBack(receiptOf(batch))
    else tell(this.#observe, { type: 'late-answer', allowed, givenBack: false })
  }

  /** Tries once and without a deadline, because no caller waits for it. A charge that cannot be returned stays. */
  async #giveBack(receipt: Receipt): Promise<void> {
    let givenBack = true
    try {
      await this.#store.settle(
        receipt,
        receipt.charges.map(() => 0),
      )
      this.#givenBack++
    } catch {
      givenBack = false
    }
    tell(this.#observe, { type: 'late-answer', allowed: true, givenBack })
  }

  #fallBack(call: GuardedCall, failure: StoreFailure, error: unknown): void {
    if (this.#observe !== undefined) tell(this.#observe, { type: 'failed', ...failure, error })
    call.fallBack(failure, error)
  }

  #tellAsked({ sentMs }: GuardedCall, outcome: 'answered' | 'failed' | 'misused'): void {
    if (this.#observe === undefined) return
    tell(this.#observe, { type: 'asked', micros: Math.round((this.#monotonicMs() - sentMs) * 1000), outcome })
  }

  #modeOf(limit: Limit): FailureMode {
    return limit.failureMode ?? this.#failureMode
  }

  /** The strictest mode of the limits of a batch, and its rule: `closed` before `local` before `open`. */
  #strictestModeOf({ items }: Batch): { readonly mode: FailureMode; readonly rule: string } {
    let strictest: { readonly mode: FailureMode; readonly rule: string } | undefined
    for (const { limit } of items) {
      const mode = this.#modeOf(limit)
      if (strictest === undefined || STRICTNESS[mode] > STRICTNESS[strictest.mode])
        strictest = { mode, rule: limit.rule }
    }
    return strictest ?? { mode: this.#failureMode, rule: 'none' }
  }
}

const STRICTNESS: Readonly<Record<FailureMode, number>> = { open: 0, local: 1, closed: 2 }

function closedError(): SluiceError {
  return new SluiceError('SLUICE_CLOSED', { problem: 'the fallback store is closed', action: 'Create a new one.' })
}
