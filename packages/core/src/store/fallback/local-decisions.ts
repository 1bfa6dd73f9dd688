import { NEVER } from '../../algorithms/algorithm.ts'
import type { Limit } from '../../rule/limit.ts'
import type { FailureMode } from '../../rule/rule.ts'
import type { Clock } from '../../system/clock-and-timers.ts'
import { MICROS_PER_MS } from '../../system/clock-and-timers.ts'
import type { Random } from '../../system/random.ts'
import { createBatch, createItem } from '../batch.ts'
import { BlockList } from '../memory/block-list.ts'
import { memoryStore } from '../memory/memory-store.ts'
import type { Batch, Item, Receipt, Settlement, Store } from '../store.ts'
import { type BlockTerm, blockTermOf } from '../store.ts'
import { shareOf } from './limit-share.ts'
import type { SeenQuota } from './remembered-quota.ts'
import { quotaOf, RememberedQuota } from './remembered-quota.ts'

/** Dependencies of {@link LocalDecisions}. */
export interface LocalDecisionParts {
  /** Number of live nodes, including this one. */
  readonly nodes: () => number
  /** Maximum number of remembered keys, and of counted keys. */
  readonly maxLocalKeys: number
  readonly clock: Clock
  readonly random: Random
}

/** A settlement, and what was remembered of its key when it was sent. */
export interface SentSettlement {
  readonly receipt: Receipt
  readonly actuals: readonly number[]
  readonly seen: SeenQuota | undefined
}

/** The store's time, derived from this node's clock. It can be set to an earlier time, to charge as of then. */
class StoreClock implements Clock {
  readonly #clock: Clock
  #aheadMicros = 0
  #atMicros: number | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  nowMicros(): number {
    return this.#atMicros ?? this.#clock.nowMicros() + this.#aheadMicros
  }

  /** The store has just reported its time as `storeMicros`. */
  follow(storeMicros: number): void {
    this.#aheadMicros = storeMicros - this.#clock.nowMicros()
  }

  /** Runs something as of an earlier time. */
  runAt(micros: number, run: () => void): void {
    this.#atMicros = micros
    try {
      run()
    } finally {
      this.#atMicros = undefined
    }
  }
}

const NOTHING_OWED: Settlement = Object.freeze({ outcome: 'settled', corrected: 0 })

/**
 * Decides in this process while the store cannot be asked: `closed` denies, `open` allows what the limits could ever
 * give, and `local` gives each key this node's share of what remains of it. What is charged here is settled here.
 *
 * Invariant of `local`: from the last answer of the store until the limit resets, this node admits at most
 * `ceil(remaining / nodes)` units of a key, where `remaining` is what that answer left. For a key without an answer,
 * and after the reset, it is `ceil(limit / nodes)`. The bound that follows from it is in
 * docs/decisions/2026-11-17-local-decisions-during-an-outage.md.
 */
export class LocalDecisions {
  readonly #parts: LocalDecisionParts
  readonly #clock: StoreClock
  /** Limits under which calls were allowed in mode `open`, and shares that were charged in mode `local`. */
  readonly #open = new MarkedLimits()
  readonly #shares = new MarkedLimits()
  /** Blocks that the store has reported. */
  readonly #blocks = new BlockList()
  /** Both are created when they are needed. */
  #quota: RememberedQuota | undefined
  #local: Store<'sync'> | undefined

  constructor(parts: LocalDecisionParts) {
    this.#parts = parts
    this.#clock = new StoreClock(parts.clock)
  }

  /** Remembers the answer of the store to an item of a batch. */
  note(item: Item, batch: Batch): void {
    const { maxLocalKeys, random } = this.#parts
    this.#quota ??= new RememberedQuota(maxLocalKeys, random)
    this.#clock.follow(batch.now)
    this.#quota.note(item, batch)
    if (item.blockedUntil > batch.now) this.#noteBlock(item, batch.now)
    else if (this.#blocks.size > 0) this.#blocks.lift(item.limit.rule, item.key)
  }

  /** Writes every field of the decision. `retryAfterMs` (1 or more): when the store may be back. */
  decide(batch: Batch, mode: FailureMode, retryAfterMs: number): void {
    batch.now = this.#parts.clock.nowMicros()
    const retryMicros = Math.ceil(retryAfterMs * MICROS_PER_MS)
    if (mode === 'closed') denyAll(batch, batch.now + retryMicros)
    else if (mode === 'open') this.#allow(batch)
    else this.#decideByShare(batch, retryMicros)
  }

  /** Settles what was charged here; undefined if it was charged in the store. */
  settle(receipt: Receipt, actuals: readonly number[]): Settlement | undefined {
    const limit = receipt.charges[0]?.limit
    if (limit === undefined || this.#open.has(limit)) return NOTHING_OWED
    return this.#shares.has(limit) ? this.#localStore().settle(receipt, actuals) : undefined
  }

  /** What is remembered of the key of a settlement that is about to be sent to the store. */
  seenBefore({ charges }: Receipt): SeenQuota | undefined {
    const [charge] = charges
    return charge === undefined || charges.length > 1 ? undefined : this.#quota?.find(charge.limit, charge.key)
  }

  /** Remembers that the store has settled a charge of a limit. */
  noteSettled(index: number, sent: SentSettlement, { outcome, corrected }: Settlement): void {
    const { limit, key, cost } = sent.receipt.charges[index]!
    const seen = this.#quota?.find(limit, key)
    const actual = sent.actuals[index]!
    if (limit.algorithm === 'concurrency' && actual > 0 && outcome === 'settled') {
      this.#noteRenewed(limit, key, { slots: actual, seen })
      return
    }
    if (seen === undefined) return
    // A reservation that had run out was given back before, and may have been seen so.
    let units = outcome === 'late' ? actual : Math.max(0, actual - cost)
    // An answer that arrived meanwhile may include what was given back.
    const isUnchanged = sent.seen?.seenAt === seen.seenAt && sent.seen.taken === seen.taken
    if (corrected < 0 && isUnchanged) units = Math.ceil(corrected)
    if (units === 0) return
    // More units taken must be charged to the local counter as well.
    const nodes = units > 0 ? 0 : seen.nodes
    this.#quota?.put(limit, key, { ...seen, taken: Math.max(0, seen.taken + units), nodes })
  }

  /** A block applies here too from now on: it may be needed before the store is back. */
  block(rule: string, key: string, term: BlockTerm): void {
    const { micros, forgotten } = blockTermOf(term)
    if (micros === 0) this.#blocks.lift(rule, key)
    for (const limit of forgotten) this.#quota?.forget(limit, key)
    if (micros === 0 && this.#local === undefined) return
    this.#localStore().block(rule, key, { micros, forgotten: this.#countedAs(forgotten) })
  }

  reset(limits: readonly Limit[], key: string): void {
    for (const limit of limits) {
      this.#blocks.lift(limit.rule, key)
      this.#quota?.forget(limit, key)
    }
    this.#local?.reset(this.#countedAs(limits), key)
  }

  async close(): Promise<void> {
    await this.#local?.close()
  }

  /** Allows what the limits could ever give. Nothing is counted. */
  #allow(batch: Batch): void {
    const most = batch.partial ? Math.max(1, Math.min(...batch.items.map(({ limit }) => limit.capacity))) : NEVER
    let allowed = true
    for (const item of batch.items) {
      const { capacity } = item.limit
      item.cost = Math.min(item.cost, most)
      const fits = capacity > 0 && item.cost <= capacity
      const { verdict } = item
      verdict.ruling = fits ? 'allowed' : 'never'
      // An allowing verdict reports what remains after the charge; here nothing is charged.
      verdict.remaining = fits && !batch.charge ? capacity - item.cost : capacity
      writeInstants(item, { now: batch.now, retryAt: fits ? batch.now : NEVER, resetAt: 0 })
      item.limit = this.#open.of(item.limit)
      allowed &&= fits
    }
    batch.allowed = allowed
  }

  /** Decides with this node's share of each limit and key. */
  #decideByShare(batch: Batch, retryMicros: number): void {
    const capacities = batch.items.map(({ limit }) => limit.capacity)
    const now = this.#clock.nowMicros()
    for (const item of batch.items) {
      item.limit = this.#shares.of(this.#shareFor(item, now))
      item.at = 0
    }
    if (batch.items.some((item) => this.#blockedUntil(item, now) > 0)) this.#denyBlocked(batch, now)
    else this.#localStore().decide(batch)
    for (const [index, { verdict, cost }] of batch.items.entries()) {
      // What exceeds the share may be possible again when the store is back.
      if (verdict.ruling !== 'never' || capacities[index]! < Math.max(1, cost)) continue
      verdict.ruling = 'limit'
      verdict.retryAt = batch.now + retryMicros
    }
  }

  /**
   * The limits that this node may have counted under. The state of a share may have another format than that of the
   * limit.
   */
  #countedAs(limits: readonly Limit[]): readonly Limit[] {
    const nodes = this.#nodes()
    return [...limits, ...limits.map((limit) => shareOf(limit, nodes))]
  }

  /** The limit that this node applies to a key by itself. */
  #shareFor({ limit, key }: Item, now: number): Limit {
    const seen = this.#quota?.find(limit, key)
    if (seen === undefined || seen.resetAt <= now) return shareOf(limit, this.#nodes())
    // The node count stays the same until the limit resets: a lower one would enlarge the share of a used-up key.
    const nodes = seen.nodes || this.#nodes()
    const share = shareOf(limit, nodes)
    const part = Math.ceil(Math.max(0, quotaOf(limit, seen.entitled) - seen.taken) / nodes)
    if (seen.nodes === 0) {
      this.#quota?.put(limit, key, { ...seen, nodes })
      if (limit.algorithm !== 'concurrency') this.#chargeRest(share, key, { seen, part })
    }
    // Slots are given back one by one, so they cannot be charged: the node has fewer of them.
    return limit.algorithm === 'concurrency' ? { ...share, limit: part, capacity: part } : share
  }

  /**
   * Leaves the local counter of a key with at most `part` units, by charging the others at the time of the answer. The
   * counter may hold units of an earlier outage.
   */
  #chargeRest(share: Limit, key: string, { seen, part }: { seen: SeenQuota; part: number }): void {
    const local = this.#localStore()
    // Without the name of the rule, a block does not keep it from being charged.
    const item = createItem({ ...share, rule: '' }, key, 0)
    const batch = { ...createBatch([item]), charge: false, entitled: seen.entitled }
    const whole = quotaOf(share, seen.entitled)
    this.#clock.runAt(seen.seenAt, () => {
      local.decide(batch)
      const left = item.verdict.remaining
      item.cost = left - part
      if (left < whole && slides(share)) {
        // What was charged before would leave the window before: all of it counts from the answer on.
        local.reset([item.limit], key)
        item.cost = whole - Math.min(left, part)
      }
      if (item.cost <= 0) return
      batch.charge = true
      local.decide(batch)
    })
  }

  /** Denies a batch with a key that is blocked according to the store. Nothing is charged. */
  #denyBlocked(batch: Batch, now: number): void {
    const { charge } = batch
    batch.charge = false
    this.#localStore().decide(batch)
    batch.charge = charge
    batch.allowed = false
    for (const item of batch.items) item.blockedUntil = Math.max(item.blockedUntil, this.#blockedUntil(item, now))
  }

  #blockedUntil({ limit, key }: Item, now: number): number {
    return this.#blocks.size === 0 ? 0 : this.#blocks.until(limit.rule, key, now)
  }

  #noteBlock({ limit, key, blockedUntil }: Item, now: number): void {
    try {
      this.#blocks.set(limit.rule, key, { until: blockedUntil, now })
    } catch {
      // The list is full: the key is not known to be blocked.
    }
  }

  /** A slot that was renewed is held for a whole lease from now on, and with it all that was seen to be taken. */
  #noteRenewed(limit: Limit, key: string, { slots, seen }: { slots: number; seen: SeenQuota | undefined }): void {
    const now = this.#clock.nowMicros()
    const leaseMicros = limit.algorithm === 'concurrency' ? limit.leaseMicros : 0
    const taken = seen === undefined || seen.resetAt <= now ? slots : seen.taken
    this.#quota?.put(limit, key, { taken, seenAt: now, resetAt: now + leaseMicros, entitled: true, nodes: 0 })
  }

  #localStore(): Store<'sync'> {
    const { maxLocalKeys: maxKeys, random } = this.#parts
    this.#local ??= memoryStore({ maxKeys, clock: this.#clock, random })
    return this.#local
  }

  /** An invalid node count is treated as 1: the limit then still applies to each node. */
  #nodes(): number {
    const nodes = Math.ceil(this.#parts.nodes())
    return Number.isSafeInteger(nodes) && nodes >= 1 ? nodes : 1
  }
}

/** Whether units of the limit return some time after they were charged, neither all at once nor at a constant rate. */
function slides(limit: Limit): boolean {
  const { algorithm } = limit.algorithm === 'hybrid' ? limit.base : limit
  return algorithm.startsWith('sliding-')
}

function denyAll(batch: Batch, retryAt: number): void {
  batch.allowed = false
  for (const item of batch.items) {
    item.verdict.ruling = 'limit'
    item.verdict.remaining = 0
    writeInstants(item, { now: batch.now, retryAt, resetAt: retryAt })
  }
}

function writeInstants(
  item: Item,
  { now, retryAt, resetAt }: { readonly now: number; readonly retryAt: number; readonly resetAt: number },
): void {
  const { verdict } = item
  item.blockedUntil = 0
  item.at = 0
  verdict.retryAt = retryAt
  verdict.resetAt = resetAt
  verdict.freshAt = now
  verdict.delayMicros = 0
  verdict.mark = 0
  verdict.nextLength = 0
}

/**
 * Limits that identify where a charge was made: copies, each of one limit, that are known to belong to this node. A
 * receipt contains its limits.
 */
class MarkedLimits {
  readonly #copies = new WeakMap<Limit, Limit>()
  readonly #made = new WeakSet<Limit>()

  of(limit: Limit): Limit {
    const known = this.#copies.get(limit)
    if (known !== undefined) return known
    const copy = Object.freeze({ ...limit })
    this.#copies.set(limit, copy)
    this.#made.add(copy)
    return copy
  }

  has(limit: Limit): boolean {
    return this.#made.has(limit)
  }
}
