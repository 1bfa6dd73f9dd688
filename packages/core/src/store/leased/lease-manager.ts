import type { Limit } from '../../rule/limit.ts'
import { MICROS_PER_MS } from '../../system/clock-and-timers.ts'
import type { Random } from '../../system/random.ts'
import { createBatch, createItem, drawHolder } from '../batch.ts'
import { receiptOf } from '../receipt.ts'
import type { Receipt, Store } from '../store.ts'

/**
 * What happens to leases. `lease-granted`: this node got units to spend. `lease-ended`: it spends no more of them.
 * `lease-settled`: the store knows what was spent. `lease-failed`: the store could not be asked for units, or told; a
 * lease that it was not told about ends there by itself and counts as spent.
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

/** Units of one limit and key that this node may spend by itself, until it ends. Instants in ms are monotone. */
export interface Lease {
  /** Names it, above 0: the mark of everything taken from it. */
  readonly serial: number
  readonly receipt: Receipt
  readonly units: number
  /** Units not spent yet. */
  balance: number
  /** When it was asked for. */
  readonly askedAtMs: number
  /** When it was there. */
  readonly grantedAtMs: number
  /** From this instant on nothing may be taken from it. */
  readonly endsAtMs: number
  /** The store's time at the grant, and how the limit stood then, microseconds since 1970. */
  readonly storeNow: number
  readonly resetAt: number
  readonly freshAt: number
  /** What the store had left besides the lease. */
  readonly left: number
  /** Its key wants to be told when the balance is lower than this. */
  attentionBelow: number
  /** Whether the next lease has been sized by how quickly this one was spent. */
  judged: boolean
  /** The balance at the latest sweep, and how many sweeps it has been the same. */
  sweptBalance: number
  idleSweeps: number
}

/** What a lease manager works with. */
export interface LeaseManagerParts {
  readonly store: Store<'async'>
  readonly random: Random
  readonly monotonicMs: () => number
  readonly leaseMs: number
  readonly observe: ((event: LeaseEvent) => void) | undefined
}

/**
 * Two clocks never run alike: they may gain or lose this part against each other. So much of a lease's time is not
 * used.
 */
export const CLOCK_TOLERANCE = 0.05
const LEAST_SAFETY_MS = 10

/** Asks the store for leases and gives them back. Knows every lease that is live. */
export class LeaseManager {
  /** How long a lease may be spent, counted from the instant it was asked for. */
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

  /** Leases that are out, and the units of them not spent yet. */
  stats(): { readonly leases: number; readonly units: number } {
    let units = 0
    for (const { balance } of this.#live.values()) units += balance
    return { leases: this.#live.size, units }
  }

  /** The lease of that serial number, unless it has been given back. */
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
   * Ends a lease and tells the store what was spent. Never fails and never tells twice: when the store is not reached,
   * the lease ends there by itself, and all of it counts as spent.
   */
  giveBack(lease: Lease): Promise<void> {
    if (!this.#live.delete(lease.serial)) return Promise.resolve()
    const spent = lease.units - lease.balance
    // Callers that still hold the object can take nothing more.
    lease.balance = 0
    const settling = this.#settle(lease, spent).finally(() => this.#settling.delete(settling))
    this.#settling.add(settling)
    return settling
  }

  /** Resolves when the store has answered all settlements that are on their way. */
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
