import type { Limit } from '../rule/limit.ts'
import { quotaUnitOf, windowMsOf } from '../rule/limit.ts'
import type { Batch, Failure, Item, Mode, Receipt } from '../store/store.ts'
import { MICROS_PER_MS } from '../system/clock-and-timers.ts'

/**
 * Why a call was denied. `limit`: retry after `retryAfterMs`. `never`: the cost exceeds what the limit can ever give,
 * so waiting does not help. `blocked`: the key is blocked. `unavailable`: the store did not answer, and the failure
 * mode denies.
 */
export type DenyReason = 'limit' | 'never' | 'blocked' | 'unavailable'

/**
 * Whole units left. Null if the store did not answer and the call was allowed without it; a local store always knows.
 */
export type Remaining<M extends Mode = Mode> = M extends 'sync' ? number : number | null

/** State of one of several limits. */
export interface LimitReport<M extends Mode = Mode> {
  /** The rule's name; a rule with several windows has several reports. */
  readonly rule: string
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: Remaining<M>
  /** Milliseconds since 1970; 0 if `remaining` is null. */
  readonly resetAt: number
  readonly retryAfterMs: number
  /** The window of the limit in milliseconds; for a rate without a window, the time to refill the whole limit. */
  readonly windowMs: number
  /** Whether the units are calls, or concurrent calls. */
  readonly quotaUnit: 'requests' | 'concurrent-requests'
}

interface DecisionFields<M extends Mode> {
  /** The rule that denied or, if allowed, the one with the least remaining. */
  readonly rule: string
  /** Units of that rule's limit. `Infinity` if nothing limits the call. */
  readonly limit: number
  /**
   * Whole units left under it. Null, with `failure` set, if the store did not answer and the failure mode is `open`.
   */
  readonly remaining: Remaining<M>
  /** Units charged by this decision: 0 if denied or peeked. */
  readonly cost: number
  /**
   * When its full limit is available again if nothing more is charged; milliseconds since 1970, rounded up. 0 if
   * nothing limits the call, or if `remaining` is null.
   */
  readonly resetAt: number
  /** How long an admitted call must wait before it runs (`leaky-bucket-queue`), in milliseconds; else 0. */
  readonly delayMs: number
  /** One report per limit if several were decided together; else empty. */
  readonly limits: readonly LimitReport<M>[]
  /** Set if the decision was made without the store; else undefined. */
  readonly failure: Failure | undefined
}

/** The call may proceed. */
export interface Allowed<M extends Mode = Mode> extends DecisionFields<M> {
  readonly allowed: true
  readonly reason: 'allowed'
  readonly retryAfterMs: 0
}

/** The call must not proceed. It cost nothing. */
export interface Denied<M extends Mode = Mode> extends DecisionFields<M> {
  readonly allowed: false
  readonly reason: DenyReason
  /**
   * Milliseconds until the same call would be allowed if nothing else is charged: still denied a millisecond earlier.
   * `Infinity` for never.
   */
  readonly retryAfterMs: number
}

/** The result of a check. A denial is a value, not an error. */
export type Decision<M extends Mode = Mode> = Allowed<M> | Denied<M>

const NO_REPORTS: readonly LimitReport[] = Object.freeze([])

/** A decision with a private reference to what it charged. Fields are only declared, so each is written once. */
class RecordedDecision {
  declare readonly allowed: boolean
  declare reason: 'allowed' | DenyReason
  declare readonly rule: string
  declare readonly limit: number
  declare remaining: Remaining
  declare cost: number
  declare readonly resetAt: number
  declare retryAfterMs: number
  declare delayMs: number
  declare limits: readonly LimitReport[]
  declare readonly failure: Failure | undefined
  readonly #limit: Limit
  readonly #key: string
  readonly #at: number
  readonly #mark: number
  readonly #receipt: Receipt | undefined

  /** Writes the most common decision: one limit, allowed and charged. {@link amend} handles all others. */
  constructor(batch: Batch, item: Item, receipt: Receipt | undefined) {
    const { limit, verdict } = item
    this.allowed = batch.allowed
    this.reason = 'allowed'
    this.rule = limit.rule
    this.limit = limit.limit
    this.remaining = verdict.remaining
    this.cost = item.cost
    this.resetAt = Math.ceil(verdict.resetAt / MICROS_PER_MS)
    this.retryAfterMs = 0
    this.delayMs = 0
    this.limits = NO_REPORTS
    this.failure = batch.failure
    this.#limit = limit
    this.#key = item.key
    this.#at = batch.now
    this.#mark = verdict.mark
    this.#receipt = receipt
  }

  /** Corrects what the constructor assumed. */
  amend(batch: Batch, item: Item): this {
    if (!(batch.allowed && batch.charge)) this.cost = 0
    this.remaining = remainingOf(batch, item)
    if (!batch.allowed) {
      this.reason = reasonOf(batch, item)
      this.retryAfterMs = retryAfterMsOf(batch, item)
    }
    this.delayMs = Math.ceil(item.verdict.delayMicros / MICROS_PER_MS)
    if (batch.items.length > 1) this.limits = reportsOf(batch)
    return this
  }

  /** The limit that decided; undefined if none did. */
  static limitOf(decision: Decision): Limit | undefined {
    return #limit in decision ? (decision as unknown as RecordedDecision).#limit : undefined
  }

  /** What was charged; undefined for nothing. */
  static receiptOf(decision: Decision): Receipt | undefined {
    if (!(#receipt in decision)) return undefined
    const recorded = decision as unknown as RecordedDecision
    if (recorded.#receipt !== undefined || recorded.cost === 0) return recorded.#receipt
    const charge = {
      limit: recorded.#limit,
      key: recorded.#key,
      at: recorded.#at,
      cost: recorded.cost,
      mark: recorded.#mark,
    }
    return { holder: 0, held: false, leaseMicros: 0, charges: [charge] }
  }
}

/** The decision on a batch of one item without a separate receipt: the fast path. */
export function decisionOnOne(batch: Batch): Decision {
  const item = batch.items[0]!
  const decision = new RecordedDecision(batch, item, undefined)
  const asWritten = batch.allowed && batch.charge && item.verdict.delayMicros === 0 && batch.failure === undefined
  return (asWritten ? decision : decision.amend(batch, item)) as unknown as Decision
}

/**
 * The decision on any batch. `receipt`: what was charged, if that is more than one plain charge. `speaks`: whether an
 * allowed batch may report the item at an index. Default: any item.
 */
export function decisionOn(batch: Batch, receipt: Receipt | undefined, speaks?: (index: number) => boolean): Decision {
  const item = (batch.allowed && speaks !== undefined && leastLeft(batch, speaks)) || decidingItem(batch)
  return new RecordedDecision(batch, item, receipt).amend(batch, item) as unknown as Decision
}

/** What a decision charged; undefined for nothing, or if no limiter of this package copy made it. */
export const receiptOfDecision: (decision: Decision) => Receipt | undefined = RecordedDecision.receiptOf

/** The limit that decided; undefined if nothing limited, or if no limiter of this package copy made it. */
export const limitOfDecision: (decision: Decision) => Limit | undefined = RecordedDecision.limitOf

/** The decision if nothing limits: every rule is off. */
export function unlimited(rule: string, cost: number): Decision {
  return {
    allowed: true,
    reason: 'allowed',
    rule,
    limit: Number.POSITIVE_INFINITY,
    remaining: Number.POSITIVE_INFINITY,
    cost,
    resetAt: 0,
    retryAfterMs: 0,
    delayMs: 0,
    limits: NO_REPORTS,
    failure: undefined,
  }
}

/**
 * The item that a decision reports: of those that deny, the one with the longest wait; else the one with the least
 * left.
 */
function decidingItem(batch: Batch): Item {
  let chosen = batch.items[0]!
  for (const item of batch.items) {
    const better = batch.allowed
      ? item.verdict.remaining < chosen.verdict.remaining
      : retryAtOf(batch, item) > retryAtOf(batch, chosen)
    if (better) chosen = item
  }
  return chosen
}

/** The allowed item with the least left that may be reported; undefined if there is none. */
function leastLeft({ items }: Batch, speaks: (index: number) => boolean): Item | undefined {
  let chosen: Item | undefined
  for (const [index, item] of items.entries()) {
    const isLeast = chosen === undefined || item.verdict.remaining < chosen.verdict.remaining
    if (isLeast && speaks(index)) chosen = item
  }
  return chosen
}

/** When the item alone would be allowed; 0 if it is now. */
function retryAtOf(batch: Batch, item: Item): number {
  const { ruling, retryAt } = item.verdict
  const free = ruling === 'allowed' ? 0 : retryAt
  return item.blockedUntil > batch.now ? Math.max(item.blockedUntil, free) : free
}

function retryAfterMsOf(batch: Batch, item: Item): number {
  const retryAt = retryAtOf(batch, item)
  return retryAt === 0 ? 0 : Math.max(0, Math.ceil((retryAt - batch.now) / MICROS_PER_MS))
}

function reasonOf(batch: Batch, item: Item): DenyReason {
  if (batch.failure?.mode === 'closed') return 'unavailable'
  if (item.blockedUntil > batch.now) return 'blocked'
  return item.verdict.ruling === 'never' ? 'never' : 'limit'
}

/** Units that really remain: an allowing verdict includes a charge that was not made. */
function remainingOf(batch: Batch, item: Item): Remaining {
  if (isUnknown(batch)) return null
  if (item.blockedUntil > batch.now) return 0
  const charged = batch.allowed && batch.charge
  return item.verdict.ruling === 'allowed' && !charged ? item.verdict.remaining + item.cost : item.verdict.remaining
}

/** Whether the counters are unknown: the store was not asked, and calls are allowed meanwhile. */
export function isUnknown(batch: Batch): boolean {
  return batch.failure?.mode === 'open'
}

/** Whether one has less left than the other. Unknown is not less than anything. */
export function isLess(one: Remaining, other: Remaining): boolean {
  return one !== null && (other === null || one < other)
}

/**
 * A report of one item. A class, because V8 promotes objects of a literal to the old generation too early if there are
 * many.
 */
class ItemReport implements LimitReport {
  readonly rule: string
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: Remaining
  readonly resetAt: number
  readonly retryAfterMs: number
  readonly windowMs: number
  readonly quotaUnit: LimitReport['quotaUnit']

  constructor(batch: Batch, item: Item) {
    this.rule = item.limit.rule
    this.allowed = item.verdict.ruling === 'allowed' && item.blockedUntil <= batch.now
    this.limit = item.limit.limit
    this.remaining = remainingOf(batch, item)
    this.resetAt = Math.ceil(item.verdict.resetAt / MICROS_PER_MS)
    this.retryAfterMs = retryAfterMsOf(batch, item)
    this.windowMs = windowMsOf(item.limit)
    this.quotaUnit = quotaUnitOf(item.limit)
  }
}

function reportsOf(batch: Batch): readonly LimitReport[] {
  return batch.items.map((item) => new ItemReport(batch, item))
}
