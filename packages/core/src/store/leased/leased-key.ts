import type { Limit } from '../../rule/limit.ts'
import type { Lease, LeaseManager } from './lease-manager.ts'

/** How many units to request. */
export interface LeaseSizes {
  /** Minimum number of units, unless the limit has fewer left. */
  readonly minUnits: number
  /** Maximum share of a limit's capacity in one lease. */
  readonly maxShare: number
}

/** A lease has at most this share of what the store has left, so leases shrink as the limit is approached. */
const PART_OF_WHAT_IS_LEFT = 1 / 4

/** A lease that is used up in less than this share of its time was too small. */
const USED_UP_QUICKLY = 1 / 4

/** A lease is idle if nothing was charged to it during this many consecutive sweeps. */
const IDLE_SWEEPS = 2

/**
 * The leases of one key under one limit, and how much it asks for.
 *
 *     cold ---- asked again between two sweeps ----> granting
 *     granting ---- denied or too little -----------> cold
 *     granting ---- granted -------------------------> current
 *     current ---- half spent in half its time ------> current, and granting the next
 *     current ---- spent, ended, or idle -------------> given back; the next becomes current, or else cold
 *
 * There are at most two leases: `current`, which is spent, and the next. A key that is cold asks the store exactly.
 */
export class LeasedKey {
  readonly limit: Limit
  readonly key: string
  /** The lease that is being spent; it may have ended. */
  current: Lease | undefined
  readonly #manager: LeaseManager
  readonly #sizes: LeaseSizes
  #next: Lease | undefined
  #granting: Promise<void> | undefined
  #size: number
  /** Units needed by the waiting calls. */
  #wanted = 0
  /** Units that the store had left at its last answer. */
  #left: number = Number.POSITIVE_INFINITY
  /** Calls since the last sweep that no lease could serve. */
  #calls = 0
  /** Incremented when all leases are ended: a grant requested before is returned when it arrives. */
  #endings = 0

  constructor(limit: Limit, key: string, { manager, sizes }: { manager: LeaseManager; sizes: LeaseSizes }) {
    this.limit = limit
    this.key = key
    this.#manager = manager
    this.#sizes = sizes
    this.#size = sizes.minUnits
  }

  /** Whether the lease has unspent units. */
  get hasUnspent(): boolean {
    return (this.current?.balance ?? 0) + (this.#next?.balance ?? 0) > 0
  }

  /** The lease that `cost` can be charged to now. Returns leases that cannot be used. */
  leaseFor(cost: number, nowMs: number): Lease | undefined {
    for (const lease of [this.current, this.#next]) {
      if (lease !== undefined && nowMs >= lease.endsAtMs) this.#endUnspent(lease)
    }
    if (this.current !== undefined && this.current.balance < cost && this.#next !== undefined) this.#end(this.current)
    return this.current !== undefined && this.current.balance >= cost ? this.current : undefined
  }

  /** Charges `cost` to the current lease, which must be live and have enough. */
  take(lease: Lease, cost: number, nowMs: number): void {
    lease.balance -= cost
    if (lease.balance < lease.attentionBelow) this.#attend(lease, nowMs)
  }

  /** Counts a call that no lease can serve: a key with more of them deserves one. */
  countCall(): void {
    this.#calls++
  }

  /** Whether a lease would serve more than this one call. */
  isWorthLeasing(cost: number): boolean {
    if (this.#mostUnits() < 2 * cost) return false
    return this.#calls > 1 || this.#granting !== undefined
  }

  /**
   * Requests a lease for `cost` more units. One request is in flight at a time; all later callers wait for it, and
   * continue in order of arrival. The grant may be too small. Rejects if the store fails.
   */
  grant(cost: number): Promise<void> {
    this.#wanted += cost
    this.#granting ??= this.#askForLease()
    return this.#granting
  }

  /** Notes the remaining units in an exact answer of the store. */
  note(left: number): void {
    this.#left = left
  }

  /**
   * Ends all leases, including one that is being requested. Resolves when the store has been informed, never rejects.
   */
  async end(): Promise<void> {
    this.#endings++
    const leases = [this.current, this.#next]
    this.current = this.#next = undefined
    await Promise.all(leases.map((lease) => lease && this.#manager.giveBack(lease)))
  }

  /** Ends all leases, and waits for one that is being requested, so that it is returned too. Never rejects. */
  async finish(): Promise<void> {
    await Promise.allSettled([this.end(), this.#granting])
  }

  /** Returns leases that would end before the next sweep, or are idle. True if there is nothing left to track. */
  sweep(nowMs: number, intervalMs: number): boolean {
    const idle = this.#isIdle()
    for (const lease of [this.current, this.#next]) {
      if (lease !== undefined && (idle || lease.endsAtMs <= nowMs + intervalMs)) this.#endUnspent(lease)
    }
    const forgettable = this.#calls === 0 && this.current === undefined && this.#granting === undefined
    this.#calls = 0
    return forgettable
  }

  /** Whether nothing has been charged for some sweeps. The next lease is not used while the current one lasts. */
  #isIdle(): boolean {
    const lease = this.current
    if (lease === undefined) return false
    lease.idleSweeps = lease.balance === lease.sweptBalance ? lease.idleSweeps + 1 : 0
    lease.sweptBalance = lease.balance
    return lease.idleSweeps >= IDLE_SWEEPS
  }

  /** The lease is half spent or used up: requests the next one in time, and returns this one when it is empty. */
  #attend(lease: Lease, nowMs: number): void {
    const share = (lease.units - lease.balance) / lease.units
    const paceMs = (nowMs - lease.askedAtMs) / share
    const isQuick = paceMs < this.#manager.lifeMs * USED_UP_QUICKLY
    if (isQuick && !lease.judged) this.#size = Math.min(Math.max(this.#size, lease.units * 2), this.#cap())
    lease.judged = true
    lease.attentionBelow = 1
    if (lease.balance === 0) this.#end(lease)
    else if (paceMs < this.#manager.lifeMs && this.#next === undefined && this.#mostUnits() > 1) this.#prefetch()
  }

  #prefetch(): void {
    if (this.#granting !== undefined) return
    this.grant(0).catch((error: unknown) => this.#manager.tellFailure(this.limit, error))
  }

  async #askForLease(): Promise<void> {
    const endings = this.#endings
    try {
      // One request covers all calls of this event loop turn.
      await undefined
      this.#size = Math.min(Math.max(this.#size, this.#wanted), this.#cap())
      const units = Math.max(1, Math.min(this.#size, this.#mostUnits()))
      const { lease, left } = await this.#manager.lend(this.limit, this.key, units)
      this.#left = left
      if (lease === undefined) return
      if (endings !== this.#endings || this.#manager.nowMs() >= lease.endsAtMs) void this.#manager.giveBack(lease)
      else if (this.current === undefined) this.current = lease
      else this.#next = lease
    } finally {
      this.#wanted = 0
      this.#granting = undefined
    }
  }

  #end(lease: Lease): void {
    if (this.current === lease) {
      this.current = this.#next
      this.#next = undefined
    } else if (this.#next === lease) {
      this.#next = undefined
    }
    void this.#manager.giveBack(lease)
  }

  /** Ends an expired lease: if most of it is unspent, the next one is smaller. */
  #endUnspent(lease: Lease): void {
    if (lease.balance * 2 > lease.units)
      this.#size = Math.max(this.#sizes.minUnits, Math.min(this.#size, Math.ceil(lease.units / 2)))
    this.#end(lease)
  }

  #cap(): number {
    return Math.max(1, Math.floor(this.limit.capacity * this.#sizes.maxShare))
  }

  #mostUnits(): number {
    return Math.min(this.#cap(), Math.floor(this.#left * PART_OF_WHAT_IS_LEFT))
  }
}
