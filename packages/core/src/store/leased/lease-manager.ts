import type { Limit } from '../../rule/limit.ts'
import { MICROS_PER_MS } from '../../system/clock-and-timers.ts'
import type { Random } from '../../system/random.ts'
import { createBatch, createItem, drawHolder, receiptOf } from '../batch.ts'
import type { Receipt, Store } from '../store.ts'

/**
 * An event of a lease. `lease-granted`: this node received units. `lease-ended`: it spends no more of them.
 * `lease-settled`: the store knows what was spent. `lease-failed`: a request for units or a settlement failed; an
 * unsettled lease expires in the store and counts as spent.
 */
export type LeaseEvent =
  | { readonly type: 'lease-granted'; readonly rule: string; readonly units: number }
  | {
      readonly type: 'lease-ended' | 'lease-settled'
      readonly rule: string
      readonly units: number
      readonly spent: number
    }
  | { readonly type: 'lease-failed'; readonly rule: string; readonly error: unknown }

/** Units of one limit and key that this node may spend until it ends. Instants in ms are monotonic. */
export interface Lease {
  /** Its id, above 0: the mark of every charge from it. */
  readonly serial: number
  readonly receipt: Receipt
  readonly units: number
  /** Units not spent yet. */
  balance: number
  /** When it was requested. */
  readonly askedAtMs: number
  /** When it arrived. */
  readonly grantedAtMs: number
  /** Nothing may be charged to it from this instant on. */
  readonly endsAtMs: number
  /** The store's time at the grant, and how the limit stood then, microseconds since 1970. */
  readonly storeNow: number
  readonly resetAt: number
  readonly freshAt: number
  /** What the store had left besides the lease. */
  readonly left: number
  /** Its key is notified if the balance drops below this. */
  attentionBelow: number
  /** Whether the next lease has been sized by how quickly this one was spent. */
  judged: boolean
  /** The balance at the last sweep, and for how many sweeps it has not changed. */
  sweptBalance: number
  idleSweeps: number
}

/** Dependencies of a lease manager. */
export interface LeaseManagerParts {
  readonly store: Store<'async'>
  readonly random: Random
  readonly monotonicMs: () => number
  readonly leaseMs: number
  readonly observe: ((event: LeaseEvent) => void) | undefined
}

/** Clock drift: two clocks may gain or lose this share against each other. This share of a lease's time is not used. */
export const CLOCK_TOLERANCE = 0.05
const LEAST_SAFETY_MS = 10

/** Requests leases from the store and returns them. Knows every live lease. */
export class LeaseManager {
  /** How long a lease may be spent, counted from its request. */
  readonly lifeMs: number
  readonly #parts: LeaseManagerParts
  readonly #live = new Map<number, Lease>()
  readonly #settling = new Set<Promise<void>>()
  #grants = 0
  #serial = 0

  constructor(parts: LeaseManagerParts) {
    this.#parts = parts
    this.lifeMs = parts.leaseMs - Math.max(LEAST_SAFETY_MS, parts.leaseMs * CLOCK_TOLERANCE)
  }

  /** Leases granted so far. */
  get grants(): number {
    return this.#grants
  }

  /** Live leases, and their unspent units. */
  stats(): { readonly leases: number; readonly units: number } {
    let units = 0
    for (const { balance } of this.#live.values()) units += balance
    return { leases: this.#live.size, units }
  }

  /** The lease with that id, unless it has been returned. */
  find(serial: number): Lease | undefined {
    return this.#live.get(serial)
  }

  nowMs(): number {
    return this.#parts.monotonicMs()
  }

  /**
   * Asks for up to `units`. No lease when the store denies it; `left` is what it has besides the lease. An error is the
   * caller's. The time of the lease counts from before it was asked for, so it ends here before it ends in the store.
   */
  async lend(
    limit: Limit,
    key: string,
    units: number,
  ): Promise<{ readonly lease: Lease | undefined; readonly left: number }> {
    const { store, random, leaseMs } = this.#parts
    const item = createItem(limit, key, units)
    const batch = createBatch([item])
    batch.partial = true
    batch.leaseMicros = leaseMs * MICROS_PER_MS
    batch.holder = drawHolder(random)
    const askedAtMs = this.nowMs()
    await store.decide(batch)
    const { remaining, resetAt, freshAt } = item.verdict
    if (!batch.allowed) return { lease: undefined, left: item.blockedUntil > 0 ? 0 : remaining }
    const lease: Lease = {
      serial: ++this.#serial,
      receipt: receiptOf(batch),
      units: item.cost,
      balance: item.cost,
      askedAtMs,
      grantedAtMs: this.nowMs(),
      endsAtMs: askedAtMs + this.lifeMs,
      storeNow: batch.now,
      resetAt,
      freshAt,
      left: remaining,
      attentionBelow: Math.ceil(item.cost / 2),
      judged: false,
      sweptBalance: item.cost,
      idleSweeps: 0,
    }
    this.#live.set(lease.serial, lease)
    this.#grants++
    this.#tell({ type: 'lease-granted', rule: limit.rule, units: lease.units })
    return { lease, left: remaining }
  }

  /**
   * Ends a lease and reports to the store what was spent. Never fails, and reports only once: if the store is
   * unreachable, the lease expires there, and all of it counts as spent.
   */
  giveBack(lease: Lease): Promise<void> {
    if (!this.#live.delete(lease.serial)) return Promise.resolve()
    const spent = lease.units - lease.balance
    // Callers that still hold the object cannot charge it any more.
    lease.balance = 0
    const settling = this.#settle(lease, spent).finally(() => this.#settling.delete(settling))
    this.#settling.add(settling)
    return settling
  }

  /** Resolves when the store has answered all pending settlements. */
  async settled(): Promise<void> {
    while (this.#settling.size > 0) await Promise.all(this.#settling)
  }

  /** Reports a failed background request for units. */
  tellFailure(limit: Limit, error: unknown): void {
    this.#tell({ type: 'lease-failed', rule: limit.rule, error })
  }

  async #settle({ receipt, units }: Lease, spent: number): Promise<void> {
    const { rule } = receipt.charges[0]!.limit
    this.#tell({ type: 'lease-ended', rule, units, spent })
    try {
      await this.#parts.store.settle(receipt, [spent])
      this.#tell({ type: 'lease-settled', rule, units, spent })
    } catch (error) {
      this.#tell({ type: 'lease-failed', rule, error })
    }
  }

  #tell(event: LeaseEvent): void {
    try {
      this.#parts.observe?.(event)
    } catch {
      // An observer must not break the store.
    }
  }
}
