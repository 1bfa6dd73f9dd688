import type { Clock, Settlement, Store } from '@sluice/core'
import { SluiceError } from '@sluice/core'
import type { Answer, Batch, BlockTerm, LeasedUnits, Limit, Receipt, State } from '@sluice/core/store'
import { algorithmOf, blockTermOf, createVerdict, decideBesideLeases, receiptOf } from '@sluice/core/store'

interface Hold {
  readonly receipt: Receipt
  readonly expiresAt: number
}

/** Units of one limit and key that are out on lease. */
interface Lease {
  readonly limit: Limit
  readonly key: string
  readonly holder: number
  readonly units: number
  readonly expiresAt: number
}

/**
 * A store as simple as can be: maps that only grow, searched from end to end. What it decides is what every other store
 * must decide; it is for comparing, not for use.
 *
 * Leases: until its end a lease counts in full. A settlement before the end takes it away and charges what was spent,
 * as of now. At its end it is charged whole, as of that instant; a settlement after that is `late` and gives back what
 * was not spent. A lease that is not there although it has not ended was settled before or forgotten by a reset:
 * settling it is `gone` and changes nothing. What runs out is seen to in the order of time, at one instant holds before
 * leases.
 */
export class ReferenceStore implements Store<'sync'> {
  readonly mode = 'sync'
  readonly #clock: Clock
  readonly #states = new Map<string, Map<string, State>>()
  readonly #blocks = new Map<string, Map<string, number>>()
  #holds: Hold[] = []
  #leases: Lease[] = []
  #closed = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  decide(batch: Batch): void {
    batch.now = this.#start()
    for (const item of batch.items) {
      const until = this.#blocks.get(item.limit.rule)?.get(item.key) ?? 0
      item.blockedUntil = until > batch.now ? until : 0
    }
    batch.allowed = this.#ask(batch)
    if (!batch.allowed && batch.partial) {
      const given = batch.items.map(({ verdict, cost }) => (verdict.ruling === 'allowed' ? cost : verdict.remaining))
      const least = Math.max(1, Math.min(...given))
      for (const item of batch.items) item.cost = Math.min(item.cost, least)
      batch.allowed = this.#ask(batch)
    }
    if (!batch.allowed || !batch.charge) return
    if (batch.leaseMicros > 0) {
      this.#lend(batch)
      return
    }
    for (const { limit, key, cost, verdict } of batch.items) {
      if (cost > 0) this.#write(limit, key, verdict.next.slice(0, verdict.nextLength))
    }
    if (batch.holdMicros > 0) this.#holds.push({ receipt: receiptOf(batch), expiresAt: batch.now + batch.holdMicros })
  }

  settle(receipt: Receipt, actuals: readonly number[]): Settlement {
    const now = this.#start()
    if (receipt.leaseMicros > 0) return this.#settleLease(receipt, actuals, now)
    const isOpen = this.#holds.some((hold) => hold.receipt.holder === receipt.holder)
    const late = receipt.held && !isOpen
    if (receipt.held) this.#holds = this.#holds.filter((hold) => hold.receipt.holder !== receipt.holder)
    return this.#correct(receipt, { now, actuals, late })
  }

  block(rule: string, key: string, term: BlockTerm): void {
    const { micros, forgotten } = blockTermOf(term)
    this.reset(forgotten, key)
    const now = this.#start()
    const keys = this.#blocks.get(rule) ?? new Map<string, number>()
    keys.set(key, now + micros)
    this.#blocks.set(rule, keys)
  }

  reset(limits: readonly Limit[], key: string): void {
    this.#start()
    for (const { id, rule } of limits) {
      this.#states.get(id)?.delete(key)
      this.#leases = this.#leases.filter((lease) => lease.limit.id !== id || lease.key !== key)
      this.#blocks.get(rule)?.delete(key)
    }
  }

  close(): Promise<void> {
    this.#closed = true
    return Promise.resolve()
  }

  /** The time, after seeing to what has run out by then. */
  #start(): number {
    if (this.#closed) throw new SluiceError('SLUICE_CLOSED', { problem: 'the reference store is closed' })
    const now = this.#clock.nowMicros()
    const ended = [...this.#holds, ...this.#leases].filter(({ expiresAt }) => expiresAt <= now)
    this.#holds = this.#holds.filter(({ expiresAt }) => expiresAt > now)
    this.#leases = this.#leases.filter(({ expiresAt }) => expiresAt > now)
    for (const one of ended.sort((first, second) => first.expiresAt - second.expiresAt)) {
      if ('receipt' in one) this.#giveBack(one)
      else this.#apply(one, { now: one.expiresAt, units: one.units, at: one.expiresAt })
    }
    return now
  }

  #ask({ items, now, holder, entitled }: Batch): boolean {
    for (const { limit, key, cost, verdict } of items) {
      const question = { ask: { now, cost, holder, entitled }, leased: this.#leased(limit, key) }
      decideBesideLeases(this.#read(limit, key), limit, question, verdict)
    }
    return items.every(({ verdict, blockedUntil }) => verdict.ruling === 'allowed' && blockedUntil === 0)
  }

  #leased(limit: Limit, key: string): LeasedUnits {
    const leases = this.#leases.filter((lease) => lease.limit.id === limit.id && lease.key === key)
    return {
      units: leases.reduce((sum, { units }) => sum + units, 0),
      soonestEnd: Math.min(...leases.map(({ expiresAt }) => expiresAt)),
    }
  }

  #lend({ items, holder, now, leaseMicros }: Batch): void {
    for (const { limit, key, cost } of items) {
      this.#leases.push({ limit, key, holder, units: cost, expiresAt: now + leaseMicros })
    }
  }

  #settleLease(receipt: Receipt, actuals: readonly number[], now: number): Settlement {
    let corrected = 0
    let outcome: Settlement['outcome'] = 'settled'
    for (const [index, { limit, key, at, cost }] of receipt.charges.entries()) {
      const spent = actuals[index]!
      const endedAt = at + receipt.leaseMicros
      const lease = this.#leases.find(
        (one) => one.holder === receipt.holder && one.limit.id === limit.id && one.key === key,
      )
      if (lease !== undefined) {
        this.#leases = this.#leases.filter((one) => one !== lease)
        this.#apply(lease, { now, units: spent, at: now })
        corrected += spent - cost
      } else if (endedAt <= now) {
        const lent = { limit, key, holder: receipt.holder, units: cost }
        corrected += this.#apply(lent, { now, units: spent - cost, at: endedAt })
        if (outcome === 'settled') outcome = 'late'
      } else {
        outcome = 'gone'
      }
    }
    return { outcome, corrected }
  }

  /** Charges units of what was a lease, or, below 0, gives units back that were charged for it at `at`. */
  #apply(
    { limit, key, holder, units: cost }: Omit<Lease, 'expiresAt'>,
    { now, units, at }: { now: number; units: number; at: number },
  ): number {
    const verdict = createVerdict()
    const state = this.#read(limit, key)
    const correction = { now, units, charge: { at, cost, mark: 0, holder } }
    const applied = algorithmOf(limit).correct(state, limit, correction, verdict) ?? 0
    if (state.length > 0 || units > 0) this.#write(limit, key, verdict.next.slice(0, verdict.nextLength))
    return applied
  }

  #giveBack({ receipt, expiresAt }: Hold): void {
    this.#correct(receipt, { now: expiresAt, actuals: receipt.charges.map(() => 0), late: false })
  }

  #correct(
    receipt: Receipt,
    { now, actuals, late }: { now: number; actuals: readonly number[]; late: boolean },
  ): Settlement {
    let corrected = 0
    let gone = false
    for (const [index, charge] of receipt.charges.entries()) {
      const { limit, key, cost } = charge
      const verdict = createVerdict()
      const units = late ? actuals[index]! : actuals[index]! - cost
      const correction = { now, units, charge: { ...charge, holder: receipt.holder } }
      const state = this.#read(limit, key)
      const applied = algorithmOf(limit).correct(state, limit, correction, verdict)
      if (state.length > 0 || units > 0) this.#write(limit, key, verdict.next.slice(0, verdict.nextLength))
      corrected += applied ?? 0
      gone ||= applied === undefined
    }
    if (gone) return { outcome: 'gone', corrected }
    return { outcome: late ? 'late' : 'settled', corrected }
  }

  #read(limit: Limit, key: string): State {
    return this.#states.get(limit.id)?.get(key) ?? []
  }

  #write(limit: Limit, key: string, state: State): void {
    const keys = this.#states.get(limit.id) ?? new Map<string, State>()
    keys.set(key, state)
    this.#states.set(limit.id, keys)
  }
}

/** A store that answers by promise, as one behind a network does, made of one that answers at once. */
export function deferredStore(store: Store<'sync'>): Store<'async'> {
  const later = async <T>(answer: () => T): Promise<T> => {
    await undefined
    return answer()
  }
  return {
    mode: 'async',
    decide: (batch): Answer<'async', void> => later(() => store.decide(batch)),
    settle: (receipt, actuals) => later(() => store.settle(receipt, actuals)),
    block: (rule, key, term) => later(() => store.block(rule, key, term)),
    reset: (limits, key) => later(() => store.reset(limits, key)),
    close: () => store.close(),
  }
}
