import { LATEST } from '../algorithms/algorithm.ts'
import { SluiceError } from '../errors.ts'
import type { Duration } from '../rule/duration.ts'
import { durationMicros, durationMs } from '../rule/duration.ts'
import type { Limit } from '../rule/limit.ts'
import { batchOf, checkCost, createBatch, createItem, drawHolder, receiptOf } from '../store/batch.ts'
import { CallbackStore, completeAfter, type PendingBatch } from '../store/callback-store.ts'
import { checkKey } from '../store/key.ts'
import type { Answer, Batch, Mode, Receipt, Settlement, Store } from '../store/store.ts'
import type { Clock, Timers } from '../system/clock-and-timers.ts'
import { MICROS_PER_MS } from '../system/clock-and-timers.ts'
import type { Random } from '../system/random.ts'
import type { Obstacle } from './acquire.ts'
import { denialInsteadOf, waitForTurn, waitInQueue } from './acquire.ts'
import {
  checkAcquireOptions,
  checkAdjustment,
  checkBlockOptions,
  checkCheckOptions,
  checkRefunded,
  checkRequests,
  checkReserveOptions,
  checkUncharged,
} from './argument-check.ts'
import type { Allowed, Decision, Denied } from './decision.ts'
import { decisionOn, decisionOnOne, receiptOfDecision, unlimited } from './decision.ts'
import { KeyQueue } from './key-queue.ts'
import type { AcquireOptions, BlockOptions, CheckOptions, KeyRequest, Limiter, ReserveOptions } from './limiter.ts'
import { notePlace } from './limiter-registry.ts'
import { onRelease, reset, settle, unblock } from './release-listeners.ts'
import type { Reservation } from './reservation.ts'
import { createReservation } from './reservation.ts'

/** Dependencies of a limiter. */
export interface LimiterParts<M extends Mode> {
  readonly store: Store<M>
  /** Whether closing the limiter closes the store. */
  readonly ownsStore: boolean
  readonly clock: Clock
  readonly random: Random
  readonly timers: Timers
  readonly maxWaiting: number
}

/** Result of a decided batch. */
export interface Finishing<T> {
  readonly finish: (batch: Batch) => T
  /** Receives the batch when it is no longer needed, if that is known. */
  readonly reuse?: (batch: Batch) => void
}

/** Decides a batch and transforms the result, synchronously or as a promise like the store. */
export function decide<M extends Mode, T>(store: Store<M>, batch: Batch, finishing: Finishing<T>): Answer<M, T> {
  if (store.mode === 'sync') {
    store.decide(batch)
    return finishing.finish(batch) as Answer<M, T>
  }
  return new Promise<T>((resolve, reject) => {
    const pending = new PendingCheck(batch, finishing, { resolve, reject })
    if (store instanceof CallbackStore) store.submit(pending)
    else completeAfter(pending, (own) => store.decide(own) as Promise<void>)
  }) as Answer<M, T>
}

/** The edge between callbacks and promises: completes the one promise of a check. */
class PendingCheck<T> implements PendingBatch {
  batch: Batch
  isSent = false
  readonly isAbandoned = false
  next: PendingBatch | undefined = undefined
  readonly fail: (error: unknown) => void
  readonly #finishing: Finishing<T>
  readonly #resolve: (value: T) => void

  constructor(
    batch: Batch,
    finishing: Finishing<T>,
    promise: { readonly resolve: (value: T) => void; readonly reject: (error: unknown) => void },
  ) {
    this.batch = batch
    this.#finishing = finishing
    this.#resolve = promise.resolve
    this.fail = promise.reject
  }

  complete(): void {
    try {
      const value = this.#finishing.finish(this.batch)
      this.#finishing.reuse?.(this.batch)
      this.#resolve(value)
    } catch (error) {
      this.fail(error)
    }
  }
}

/** A value as the mode of the store delivers it. */
export function deliver<M extends Mode, T>(store: Store<M>, value: T): Answer<M, T> {
  return (store.mode === 'sync' ? value : Promise.resolve(value)) as Answer<M, T>
}

/** Maximum number of batches kept for later checks. */
const MOST_SPARE = 1000

/** Units of each decision that were already returned, by any limiter. */
const givenBack = new WeakMap<Decision, number>()

/** Returns units of a decision through its receipt. See `Limiter.refund`. */
export function refund<M extends Mode>(store: Store<M>, decision: Decision, units?: number): Answer<M, Settlement> {
  checkRefunded(decision)
  const receipt = receiptOfDecision(decision)
  if (receipt?.held === true) {
    throw new SluiceError('SLUICE_UNSUPPORTED', {
      problem: 'a reservation cannot be refunded',
      action: 'Use its release() or settle(); left alone, it gives itself back.',
    })
  }
  const before = givenBack.get(decision) ?? 0
  if (units !== undefined) checkCost(units)
  const charges = receipt?.charges.map((charge) => ({ ...charge, cost: Math.max(0, charge.cost - before) })) ?? []
  const owed = charges.reduce((most, charge) => Math.max(most, charge.cost), 0)
  const back = Math.min(units ?? owed, owed)
  if (receipt === undefined) checkUncharged(decision)
  if (receipt === undefined || back === 0) return deliver(store, { outcome: 'settled', corrected: 0 })
  givenBack.set(decision, before + back)
  return settle(
    store,
    { ...receipt, charges },
    charges.map(({ cost }) => Math.max(0, cost - back)),
  )
}

/** The result for a caller whose turn did not come in time. */
function denialOf(standing: Decision): Decision {
  return standing.allowed ? denialInsteadOf(standing, 0) : standing
}

const KEY_REQUESTS = { call: 'checkAll', fields: ['key', 'cost'], example: '{ key: "user:1", cost: 2 }' }

/** The limiter of one rule. */
export class RuleLimiter<M extends Mode> implements Limiter<M> {
  readonly #rule: string
  readonly #limits: readonly Limit[]
  readonly #parts: LimiterParts<M>
  readonly #queue = new KeyQueue()
  /** Reused on synchronous stores, which are done with it when they return: a typical decision allocates one object. */
  readonly #reused: Batch
  /** Batches for later checks. */
  readonly #spare: Batch[] = []
  readonly #toDecision: Finishing<Decision>
  readonly #toBoolean: Finishing<boolean>
  readonly #holdsSlots: boolean
  /** One limit, no slots, a synchronous store: the fast path. */
  readonly #simple: boolean
  #closed = false

  constructor(rule: string, limits: readonly Limit[], parts: LimiterParts<M>) {
    this.#rule = rule
    this.#limits = limits
    this.#parts = parts
    this.#reused = this.#newBatch()
    const reuse = (batch: Batch): void => {
      if (this.#spare.length < MOST_SPARE) this.#spare.push(batch)
    }
    const isOne = limits.length === 1 && limits[0]!.algorithm !== 'concurrency'
    this.#toDecision = { finish: isOne ? decisionOnOne : MANY.finish, reuse }
    this.#toBoolean = { finish: isAllowed, reuse }
    this.#holdsSlots = limits.some((limit) => limit.algorithm === 'concurrency')
    this.#simple = limits.length === 1 && !this.#holdsSlots && parts.store.mode === 'sync'
    notePlace(this, { store: parts.store, rules: [rule] })
  }

  get holdsSlots(): boolean {
    return this.#holdsSlots
  }

  tryAcquire(key: string): Answer<M, boolean> {
    if (this.#simple) {
      this.#chargeOne(key, 1)
      return this.#reused.allowed as Answer<M, boolean>
    }
    if (this.#limits.length === 0) this.#checkCall(key)
    if (this.#limits.length === 0) return deliver(this.#parts.store, true)
    return decide(this.#parts.store, this.#batch(key, 1), this.#toBoolean)
  }

  check(key: string, options?: CheckOptions): Answer<M, Decision> {
    if (this.#simple && options === undefined) {
      this.#chargeOne(key, 1)
      return decisionOnOne(this.#reused) as Answer<M, Decision>
    }
    return this.#decide(key, options, true)
  }

  peek(key: string, options?: CheckOptions): Answer<M, Decision> {
    return this.#decide(key, options, false)
  }

  checkAll(requests: readonly KeyRequest[]): Answer<M, Decision> {
    this.#checkOpen()
    checkRequests(requests, KEY_REQUESTS)
    const batch = batchOf(requests.map(({ key, cost = 1 }) => ({ limits: this.#limits, key, cost })))
    if (batch.items.length === 0) return deliver(this.#parts.store, unlimited(this.#rule, 0))
    batch.holder = this.#holdsSlots ? drawHolder(this.#parts.random) : 0
    return decide(this.#parts.store, batch, MANY)
  }

  async acquire(key: string, options: AcquireOptions = {}): Promise<Decision> {
    checkAcquireOptions(options)
    const { cost = 1, entitled = true, signal, maxWait } = options
    const maxWaitMs = maxWait === undefined ? Number.POSITIVE_INFINITY : durationMs(maxWait, 'maxWait')
    checkKey(key)
    const { store, clock, timers, maxWaiting } = this.#parts
    const wait = {
      giveBack: async (given: Decision) => void (given.allowed && (await this.refund(given))),
      onRelease: (listener: () => void) => onRelease(store, [{ limit: { rule: this.#rule }, key }], listener),
      queue: this.#queue,
      key,
      deadlineMicros: clock.nowMicros() + maxWaitMs * MICROS_PER_MS,
      longestPauseMs: Number.POSITIVE_INFINITY,
      clock,
      timers,
      signal,
      maxWaiting,
    }
    const decision = await waitForTurn<Decision>({
      ...wait,
      attempt: () => this.check(key, { cost, entitled }) as Decision | Promise<Decision>,
      obstacleTo: (answer) => this.#obstacleTo(answer),
      giveUp: async (denied) => denied ?? denialOf((await this.peek(key, { cost, entitled })) as Decision),
    })
    return decision.allowed && decision.delayMs > 0 ? await waitInQueue(wait, decision) : decision
  }

  #obstacleTo({ allowed, reason, retryAfterMs }: Decision): Obstacle | undefined {
    if (allowed || reason === 'never') return undefined
    return { waitsFor: this.#holdsSlots && reason === 'limit' ? 'slot' : 'time', retryAfterMs }
  }

  reserve(key: string, options: ReserveOptions = {}): Answer<M, Reservation<M> | Denied> {
    checkReserveOptions(options)
    const { cost = 1, entitled = true, expiresAfter = '1m' } = options
    const { store, random } = this.#parts
    this.#checkCall(key)
    checkCost(cost)
    if (this.#limits.length === 0) return deliver(store, this.#unlimitedReservation(cost))
    const batch = createBatch(this.#limits.map((limit) => createItem(limit, key, cost)))
    batch.entitled = entitled
    batch.holder = drawHolder(random)
    batch.holdMicros = this.#holdsSlots ? 0 : durationMicros(expiresAfter, 'expiresAfter')
    const finish = (answered: Batch): Reservation<M> | Denied => {
      const receipt = receiptOf(answered)
      const decision = decisionOn(answered, answered.allowed ? receipt : undefined)
      return decision.allowed ? createReservation(store, decision, receipt) : decision
    }
    return decide(store, batch, { finish })
  }

  refund(decision: Decision, units?: number): Answer<M, Settlement> {
    this.#checkOpen()
    return refund(this.#parts.store, decision, units)
  }

  adjust(key: string, units: number): Answer<M, Settlement> {
    checkKey(key)
    checkAdjustment(units, this.#limits)
    this.#checkOpen()
    const { store } = this.#parts
    if (units === 0 || this.#limits.length === 0) return deliver(store, { outcome: 'settled', corrected: 0 })
    const charges = this.#limits.map((limit) => ({ limit, key, at: LATEST, cost: Math.max(0, -units), mark: 0 }))
    const receipt: Receipt = { holder: 0, held: false, leaseMicros: 0, charges }
    return settle(
      store,
      receipt,
      charges.map(() => Math.max(0, units)),
    )
  }

  reset(key: string): Answer<M, void> {
    checkKey(key)
    this.#checkOpen()
    return reset(this.#parts.store, this.#limits, key)
  }

  block(key: string, duration: Duration, options: BlockOptions = {}): Answer<M, void> {
    checkBlockOptions(options)
    checkKey(key)
    this.#checkOpen()
    const micros = durationMicros(duration, 'duration')
    return this.#parts.store.block(this.#rule, key, options.reset ? { micros, forgotten: this.#limits } : micros)
  }

  unblock(key: string): Answer<M, void> {
    checkKey(key)
    this.#checkOpen()
    return unblock(this.#parts.store, this.#rule, key)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#queue.close()
    if (this.#parts.ownsStore) await this.#parts.store.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #decide(key: string, options: CheckOptions | undefined, charge: boolean): Answer<M, Decision> {
    const { store } = this.#parts
    if (options !== undefined) checkCheckOptions(options)
    const cost = options?.cost ?? 1
    if (cost !== 1) checkCost(cost)
    if (this.#limits.length === 0) this.#checkCall(key)
    if (this.#limits.length === 0) return deliver(store, unlimited(this.#rule, charge ? cost : 0))
    const batch = this.#batch(key, cost)
    batch.charge = charge
    if (options !== undefined) {
      batch.partial = options.partial ?? false
      batch.entitled = options.entitled ?? true
    }
    return decide(store, batch, this.#toDecision)
  }

  /** Charges one key of the only limit. The decision is in the reused batch. */
  #chargeOne(key: string, cost: number): void {
    this.#checkOpen()
    checkKey(key)
    const batch = this.#reused
    const item = batch.items[0]!
    item.key = key
    item.cost = cost
    batch.charge = true
    batch.partial = false
    batch.entitled = true
    this.#parts.store.decide(batch)
  }

  /** A batch for one key: the reused one on a synchronous store. */
  #batch(key: string, cost: number): Batch {
    this.#checkOpen()
    checkKey(key)
    const { store, random } = this.#parts
    const batch = store.mode === 'sync' ? this.#reused : (this.#spare.pop() ?? this.#newBatch())
    batch.charge = true
    batch.partial = false
    batch.entitled = true
    batch.holder = this.#holdsSlots ? drawHolder(random) : 0
    batch.failure = undefined
    for (let index = 0; index < batch.items.length; index++) {
      const item = batch.items[index]!
      // A fallback decision replaces the limit of the item.
      item.limit = this.#limits[index]!
      item.key = key
      item.cost = cost
      item.at = 0
    }
    return batch
  }

  #newBatch(): Batch {
    return createBatch(this.#limits.map((limit) => createItem(limit, '', 1)))
  }

  #unlimitedReservation(cost: number): Reservation<M> {
    const decision = unlimited(this.#rule, cost) as Allowed
    return createReservation(this.#parts.store, decision, { holder: 0, held: false, leaseMicros: 0, charges: [] })
  }

  #checkCall(key: string): void {
    this.#checkOpen()
    checkKey(key)
  }

  #checkOpen(): void {
    if (!this.#closed) return
    throw new SluiceError('SLUICE_CLOSED', {
      problem: `the limiter "${this.#rule}" is closed`,
      action: 'Create a new one.',
    })
  }
}

/** The decision on any batch, with the receipt of what it charged. */
export const MANY: Finishing<Decision> = { finish: (batch) => decisionOn(batch, chargedBy(batch)) }

function isAllowed(batch: Batch): boolean {
  return batch.allowed
}

/** The receipt of a batch, if it charged anything. */
export function chargedBy(batch: Batch): Receipt | undefined {
  return batch.allowed && batch.charge ? receiptOf(batch) : undefined
}
