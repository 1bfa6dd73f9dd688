import { NEVER } from '../../algorithms/algorithm.ts'
import type { Limit } from '../../rule/limit.ts'
import type { FailureMode } from '../../rule/rule.ts'
import { MICROS_PER_MS } from '../../system/clock.ts'
import type { Batch, BlockTerm, Item, Receipt, Settlement } from '../store.ts'
import { MarkedLimits } from './limit-share.ts'
import type { LocalDecisionParts, SentSettlement } from './local-decisions.ts'
import { LocalDecisions } from './local-decisions.ts'

/** What {@link FallbackAnswers} works with. */
export interface FallbackParts extends LocalDecisionParts {
  /** For limits that have no mode of their own. */
  readonly failureMode: FailureMode
}

/** How a batch is to be answered: by which mode, and which rule asks for it. */
export interface FallbackMode {
  readonly mode: FailureMode
  readonly rule: string
}

const STRICTNESS: Readonly<Record<FailureMode, number>> = { open: 0, local: 1, closed: 2 }

const NOTHING_OWED: Settlement = Object.freeze({ outcome: 'settled', corrected: 0 })

/** Answers for a store that cannot be asked. What is charged here is settled here. */
export class FallbackAnswers {
  readonly #parts: FallbackParts
  readonly #open = new MarkedLimits()
  readonly #local: LocalDecisions

  constructor(parts: FallbackParts) {
    this.#parts = parts
    this.#local = new LocalDecisions(parts)
  }

  /** Remembers what local decisions need of an answer of the store. */
  note(batch: Batch): void {
    const { items } = batch
    for (let index = 0; index < items.length; index++) {
      const item = items[index]!
      if (this.#isLocal(item.limit)) this.#local.note(item, batch)
    }
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
    if (mode === 'closed') denyAll(batch, batch.now + retryMicros)
    else if (mode === 'open') this.#allow(batch)
    else this.#decideLocally(batch, retryMicros)
  }

  /** Settles what was charged here; undefined when that was not here. */
  settle(receipt: Receipt, actuals: readonly number[]): Settlement | undefined {
    const limit = receipt.charges[0]?.limit
    if (limit === undefined || this.#open.has(limit)) return NOTHING_OWED
    return this.#local.hasCharged(limit) ? this.#local.settle(receipt, actuals) : undefined
  }

  /** Notes a settlement that is about to be sent to the store. */
  settling(receipt: Receipt, actuals: readonly number[]): SentSettlement {
    return { receipt, actuals, seen: this.#local.seenBefore(receipt) }
  }

  /** Remembers that the store has made a settlement. */
  settled(sent: SentSettlement, settlement: Settlement): void {
    for (const [index, { limit }] of sent.receipt.charges.entries()) {
      if (this.#isLocal(limit)) this.#local.noteSettled(index, sent, settlement)
    }
  }

  /** A block applies here too, from now on: it may be needed before the store is back. */
  block(rule: string, key: string, term: BlockTerm): void {
    this.#local.block(rule, key, term)
  }

  reset(limits: readonly Limit[], key: string): void {
    this.#local.reset(limits, key)
  }

  close(): Promise<void> {
    return this.#local.close()
  }

  #isLocal(limit: Limit): boolean {
    return (limit.failureMode ?? this.#parts.failureMode) === 'local'
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
      writeInstants(item, { now: batch.now, retryAt: fits ? batch.now : NEVER, resetAt: 0 })
      item.limit = this.#open.of(item.limit)
      allowed &&= fits
    }
    batch.allowed = allowed
  }

  #decideLocally(batch: Batch, retryMicros: number): void {
    const capacities = batch.items.map(({ limit }) => limit.capacity)
    this.#local.decide(batch)
    for (const [index, { verdict, cost }] of batch.items.entries()) {
      // What only a share can never give, the store may when it is back.
      if (verdict.ruling !== 'never' || capacities[index]! < Math.max(1, cost)) continue
      verdict.ruling = 'limit'
      verdict.retryAt = batch.now + retryMicros
    }
  }
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
