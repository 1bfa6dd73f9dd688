import { NEVER } from '../algorithms/algorithm.ts'
import type { Clock } from '../clock.ts'
import { MICROS_PER_MS } from '../clock.ts'
import type { Limit } from '../limit.ts'
import type { FailureMode } from './failure.ts'
import { shareOf } from './limit-share.ts'
import type { Batch, Item, Receipt, Settlement, Store } from './store.ts'

/** What {@link FallbackAnswers} works with. */
export interface FallbackParts {
  /** For limits that have no mode of their own. */
  readonly failureMode: FailureMode
  /** Live nodes, this one included. */
  readonly nodes: () => number
  /** The store for `local`; made when it is needed, unless there is one. */
  readonly local: Store<'sync'> | undefined
  readonly createLocal: () => Store<'sync'>
  readonly clock: Clock
}

/** How a batch is to be answered: by which mode, and which rule asks for it. */
export interface FallbackMode {
  readonly mode: FailureMode
  readonly rule: string
}

const STRICTNESS: Readonly<Record<FailureMode, number>> = { open: 0, local: 1, closed: 2 }

const NOTHING_OWED: Settlement = Object.freeze({ outcome: 'settled', corrected: 0 })

/**
 * Limits that say where a charge was made: copies, each of one limit, that are known to have been made here. A receipt
 * carries its limits along, and so finds the way back.
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

/** Answers for a store that cannot be asked. What is charged here is settled here. */
export class FallbackAnswers {
  readonly #parts: FallbackParts
  readonly #open = new MarkedLimits()
  readonly #shares = new MarkedLimits()
  #local: Store<'sync'> | undefined

  constructor(parts: FallbackParts) {
    this.#parts = parts
    this.#local = parts.local
  }

  /** The strictest mode of the limits of a batch: `closed` before `local` before `open`. */
  modeOf(batch: Batch): FallbackMode {
    let strictest: FallbackMode | undefined
    for (const { limit } of batch.items) {
      const mode = limit.failureMode ?? this.#parts.failureMode
      if (strictest === undefined || STRICTNESS[mode] > STRICTNESS[strictest.mode])
        strictest = { mode, rule: limit.rule }
    }
    return strictest ?? { mode: this.#parts.failureMode, rule: 'none' }
  }

  /** Answers every field of a batch. `retryAfterMs` (1 or more) is when the store may be back. */
  decide(batch: Batch, mode: FailureMode, retryAfterMs: number): void {
    batch.now = this.#parts.clock.nowMicros()
    const retryMicros = Math.ceil(retryAfterMs * MICROS_PER_MS)
    if (mode === 'closed') refuseAll(batch, batch.now + retryMicros)
    else if (mode === 'open') this.#allow(batch)
    else this.#decideLocally(batch, retryMicros)
  }

  /** Settles what was charged here; undefined when that was not here. */
  settle(receipt: Receipt, actuals: readonly number[]): Settlement | undefined {
    const limit = receipt.charges[0]?.limit
    if (limit === undefined || this.#open.has(limit)) return NOTHING_OWED
    return this.#shares.has(limit) ? this.#localStore().settle(receipt, actuals) : undefined
  }

  /** A block counts here too, from now on: it may be needed before the store is back. */
  block(rule: string, key: string, micros: number): void {
    if (micros > 0 || this.#local !== undefined) this.#localStore().block(rule, key, micros)
  }

  reset(limits: readonly Limit[], key: string): void {
    if (this.#local === undefined) return
    const nodes = this.#nodes()
    this.#local.reset(limits, key)
    // A share may keep its counters in another form than the limit.
    this.#local.reset(
      limits.map((limit) => shareOf(limit, nodes)),
      key,
    )
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
      // A verdict that allows speaks of what is left after the charge; here the charge leaves all of it.
      verdict.remaining = fits && !batch.charge ? capacity - item.cost : capacity
      writeInstants(item, { now: batch.now, retryAt: fits ? batch.now : NEVER, resetAt: batch.now })
      item.limit = this.#open.of(item.limit)
      allowed &&= fits
    }
    batch.allowed = allowed
  }

  #decideLocally(batch: Batch, retryMicros: number): void {
    const nodes = this.#nodes()
    const capacities = batch.items.map(({ limit }) => limit.capacity)
    for (const item of batch.items) {
      item.limit = this.#shares.of(shareOf(item.limit, nodes))
      item.at = 0
    }
    this.#localStore().decide(batch)
    for (const [index, { verdict, cost }] of batch.items.entries()) {
      // What only a share can never give, the store may when it is back.
      if (verdict.ruling !== 'never' || capacities[index]! < Math.max(1, cost)) continue
      verdict.ruling = 'limit'
      verdict.retryAt = batch.now + retryMicros
    }
  }

  #localStore(): Store<'sync'> {
    this.#local ??= this.#parts.createLocal()
    return this.#local
  }

  /** A number of nodes that cannot be is taken for one node: a limit then still holds for each. */
  #nodes(): number {
    const nodes = Math.ceil(this.#parts.nodes())
    return Number.isSafeInteger(nodes) && nodes >= 1 ? nodes : 1
  }
}

function refuseAll(batch: Batch, retryAt: number): void {
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
