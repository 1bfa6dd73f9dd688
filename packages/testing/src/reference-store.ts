import type { Answer, Clock, Settlement, Store } from '@sluice/core'
import { SluiceError } from '@sluice/core'
import type { Batch, Limit, Receipt, State } from '@sluice/core/internal'
import { algorithmOf, createVerdict, receiptOf } from '@sluice/core/internal'

interface Hold {
  readonly receipt: Receipt
  readonly expiresAt: number
}

/**
 * A store as simple as can be: maps that only grow, searched from end to end. What it decides is what every other store
 * must decide; it is for comparing, not for use.
 */
export class ReferenceStore implements Store<'sync'> {
  readonly mode = 'sync'
  readonly #clock: Clock
  readonly #states = new Map<string, Map<string, State>>()
  readonly #blocks = new Map<string, Map<string, number>>()
  #holds: Hold[] = []
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
    for (const { limit, key, cost, verdict } of batch.items) {
      if (cost > 0) this.#write(limit, key, verdict.next.slice(0, verdict.nextLength))
    }
    if (batch.holdMicros > 0) this.#holds.push({ receipt: receiptOf(batch), expiresAt: batch.now + batch.holdMicros })
  }

  settle(receipt: Receipt, actuals: readonly number[]): Settlement {
    const now = this.#start()
    const isOpen = this.#holds.some((hold) => hold.receipt.holder === receipt.holder)
    const late = receipt.held && !isOpen
    if (receipt.held) this.#holds = this.#holds.filter((hold) => hold.receipt.holder !== receipt.holder)
    return this.#correct(receipt, { now, actuals, late })
  }

  block(rule: string, key: string, micros: number): void {
    const now = this.#start()
    const keys = this.#blocks.get(rule) ?? new Map<string, number>()
    keys.set(key, now + micros)
    this.#blocks.set(rule, keys)
  }

  reset(limits: readonly Limit[], key: string): void {
    this.#start()
    for (const { id, rule } of limits) {
      this.#states.get(id)?.delete(key)
      this.#blocks.get(rule)?.delete(key)
    }
  }

  close(): Promise<void> {
    this.#closed = true
    return Promise.resolve()
  }

  /** The time, after giving back what has run out by then. */
  #start(): number {
    if (this.#closed) throw new SluiceError('SLUICE_CLOSED', { problem: 'the reference store is closed' })
    const now = this.#clock.nowMicros()
    const expired = this.#holds.filter((hold) => hold.expiresAt <= now)
    this.#holds = this.#holds.filter((hold) => hold.expiresAt > now)
    for (const { receipt } of expired.sort((one, other) => one.expiresAt - other.expiresAt)) {
      this.#correct(receipt, { now, actuals: receipt.charges.map(() => 0), late: false })
    }
    return now
  }

  #ask({ items, now, holder, entitled }: Batch): boolean {
    for (const { limit, key, cost, verdict } of items) {
      algorithmOf(limit).decide(this.#read(limit, key), limit, { now, cost, holder, entitled }, verdict)
    }
    return items.every(({ verdict, blockedUntil }) => verdict.ruling === 'allowed' && blockedUntil === 0)
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
    block: (rule, key, micros) => later(() => store.block(rule, key, micros)),
    reset: (limits, key) => later(() => store.reset(limits, key)),
    close: () => store.close(),
  }
}
