import { durationMs } from '../rule/duration.ts'
import type { Limit } from '../rule/limit.ts'
import { compileRule } from '../rule-kinds.ts'
import { createBatch, createItem } from '../store/batch.ts'
import type { Batch, Store } from '../store/store.ts'
import { MICROS_PER_MS } from '../system/clock-and-timers.ts'
import { lookAt } from './counter-report.ts'
import type { LiveEntries } from './entries/live-entries.ts'
import type { Block } from './entries/live-entry.ts'
import type { PenaltyLimits } from './entries/penalty.ts'
import { penaltyLimits as limitsOfPenalty, nextBlock, penaltyName } from './entries/penalty.ts'
import type { UnblockedAddresses } from './entries/unblocked-addresses.ts'
import type { CompiledRule } from './limits/compiled-rule.ts'
import type { DimensionReader } from './limits/dimension-reader.ts'
import type { Offence } from './policy-engine-options.ts'
import type { PolicyObserver } from './policy-event.ts'
import { tellPolicy } from './policy-event.ts'
import type { PolicyRequest } from './rule-set/policy-request.ts'
import { decideEach } from './store-answer.ts'

/** Dependencies of a {@link PenaltyTracker}. */
export interface PenaltyTrackerParts {
  readonly store: Store
  readonly live: LiveEntries
  readonly keepBlock: ((block: Block) => unknown) | undefined
  readonly observer: PolicyObserver | undefined
  /** Callers of a dimension of addresses that are never blocked. */
  readonly unblocked: UnblockedAddresses
}

/** A rule that may have blocked a caller. */
export interface BlockingRule {
  readonly name: string
  /** The counter of denials, if there is or was a penalty. */
  readonly penaltyLimits: PenaltyLimits | undefined
}

/** A caller whose block is lifted. */
export interface BlockedCaller {
  readonly reader: DimensionReader
  /** As in requests. */
  readonly entity: string
  /** A rule that is known to have blocked it. */
  readonly rule: string | undefined
}

/** A violation: who, what and when. */
export interface OffendingCaller {
  readonly reader: DimensionReader
  /** In any spelling. */
  readonly entity: string
  readonly offence: Offence
  /** Milliseconds since 1970. */
  readonly nowMs: number
}

/** Maximum number of offences whose limits are cached. A configuration has fewer. */
const MOST_OFFENCES = 4096

/**
 * Counts the denials of rules with a penalty, and blocks callers with too many. Denials are counted in the store, by
 * all nodes together; {@link PenaltyLimits} describes how one violation causes one block. A block is active at once on
 * this node, and in the store for the rule that caused it; on other nodes once it has been distributed.
 */
export class PenaltyTracker {
  readonly #parts: PenaltyTrackerParts
  /** The limits of offences, by everything they depend on: stores identify limits by object. */
  readonly #offences = new Map<string, PenaltyLimits>()

  constructor(parts: PenaltyTrackerParts) {
    this.#parts = parts
  }

  /** Counts a denied request. `rules`: the rule of each item of its batch. */
  denied(batch: Batch, rules: readonly CompiledRule[], { request, nowMs }: DeniedRequest): void {
    // Without the store it is unknown whether the caller exceeded the limit.
    if (batch.failure !== undefined) return
    let previous: CompiledRule | undefined
    for (const [index, item] of batch.items.entries()) {
      const rule = rules[index]!
      if (rule.reader.hasAddress && this.#parts.unblocked.has(request.ip!)) continue
      const isDenied = item.verdict.ruling !== 'allowed' && item.blockedUntil <= batch.now
      // The windows of a rule are consecutive, and count as one denial.
      if (!isDenied || rule.penaltyLimits === undefined || rule === previous) continue
      previous = rule
      const limits = batch.items.flatMap(({ limit }, other) => (rules[other] === rule ? [limit] : []))
      const violation = { rule, entity: rule.reader.read(request)!, key: item.key, limits, nowMs }
      this.#count(rule.penaltyLimits, item.key, { full: () => this.#block(violation), blocked: () => undefined })
    }
  }

  /** Counts an offence. */
  offended({ reader, entity: spelled, offence, nowMs }: OffendingCaller): void {
    const { live, unblocked } = this.#parts
    if (reader.hasAddress && unblocked.has(spelled)) return
    const { dimension } = reader
    const entity = reader.canonical(spelled)
    const key = reader.keyOf(entity)
    const { name, reason, block } = offence
    const limits = this.#limitsOf(offence)
    const keep = (lengthMs: number): void => {
      if (live.blockOf(dimension, entity, nowMs) !== undefined) return
      const until = Math.ceil(nowMs + lengthMs)
      const strikes = (live.strikesOf(dimension, entity, nowMs)?.strikes ?? 0) + 1
      const why = reason === undefined ? {} : { reason }
      this.keep({ dimension, entity, until, strikes, forgottenAt: until, rule: name, ...why }, nowMs)
    }
    const blockMs = durationMs(block, 'block')
    this.#count(limits, key, {
      full: () => {
        keep(blockMs)
        const { denials } = limits
        this.#change((store) =>
          store.block(denials.rule, key, { micros: blockMs * MICROS_PER_MS, forgotten: [denials] }),
        )
      },
      // Another node has blocked the caller.
      blocked: keep,
    })
  }

  #limitsOf({ name, after, within, block }: Offence): PenaltyLimits {
    const text = JSON.stringify([name, after, within, block])
    let limits = this.#offences.get(text)
    if (limits === undefined) {
      limits = limitsOfPenalty(name, { after, within, block })
      if (this.#offences.size >= MOST_OFFENCES) this.#offences.clear()
      this.#offences.set(text, limits)
    }
    return limits
  }

  /**
   * Counts one violation of a caller. Calls `full` on one node when the threshold is reached, and `blocked` with the
   * remaining time in milliseconds if the store has already blocked the caller for them.
   */
  #count(
    { denials, claim }: PenaltyLimits,
    key: string,
    then: { readonly full: () => void; readonly blocked: (restMs: number) => void },
  ): void {
    const count = createBatch([createItem(denials, key, 1)])
    const bid = createBatch([createItem(claim, key, 1)])
    // Equivalent for one unit, but never answered by a deny cache or a lease: only the store knows which node was
    // first.
    bid.partial = true
    this.#decide(count, () => {
      const { verdict, blockedUntil } = count.items[0]!
      if (blockedUntil > count.now) then.blocked((blockedUntil - count.now) / MICROS_PER_MS)
      else if (verdict.remaining === 0) {
        // A denied claim went to another node, or the caller is already blocked.
        this.#decide(bid, () => void (bid.allowed && then.full()))
      }
    })
  }

  /** Activates a block here and distributes it. */
  keep(block: Block, nowMs: number): void {
    const { live, keepBlock, observer } = this.#parts
    live.putOwnBlock(block, nowMs)
    tellPolicy(observer, { type: 'blocked', block })
    const fail = (error: unknown): void => tellPolicy(observer, { type: 'block-not-kept', block, error })
    try {
      const kept = keepBlock?.(block)
      if (kept instanceof Promise) kept.catch(fail)
    } catch (error) {
      fail(error)
    }
  }

  /**
   * Lifts the block of a caller here and in the store, for all these rules and for those that caller and block name,
   * and forgets the denials that caused it. False if nothing was blocked. Rejects if the store fails; the caller is
   * unblocked here nevertheless.
   */
  async lift({ reader, entity, rule }: BlockedCaller, rules: readonly BlockingRule[], nowMs: number): Promise<boolean> {
    const { store, live } = this.#parts
    const named = [rule, live.strikesOf(reader.dimension, entity, nowMs)?.rule].filter((name) => name !== undefined)
    const wasHere = live.liftBlock(reader.dimension, entity)
    const key = reader.keyOf(entity)
    const looks = rules.map(({ name }) => lookAt([blockOnly(name)], key))
    await decideEach(store, looks)
    const names = new Set([...rules.map(({ name }) => name), ...named])
    const offences = new Set(named.map(penaltyName))
    const counted = [
      ...rules.flatMap(({ penaltyLimits }) => penaltyLimits ?? []),
      ...[...this.#offences.values()].filter(({ denials }) => offences.has(denials.rule)),
    ]
    // Lifted whatever was seen: that may be outdated.
    await Promise.all([
      ...Array.from(names, (name) => store.block(name, key, 0)),
      ...Array.from(names, (name) => store.block(penaltyName(name), key, 0)),
      ...counted.map(({ denials, claim }) => store.reset([denials, claim], key)),
    ])
    return wasHere || looks.some(({ items, now }) => items[0]!.blockedUntil > now)
  }

  /** Lifts a block in the store for the rule that it names. Does not wait. */
  liftInStore(reader: DimensionReader, { rule, entity }: Block): void {
    if (rule === undefined) return
    const key = reader.keyOf(entity)
    for (const name of [rule, penaltyName(rule)]) this.#change((store) => store.block(name, key, 0))
  }

  /** Calls the store and handles its result. Does not wait. */
  #decide(batch: Batch, then: () => void): void {
    const { store } = this.#parts
    const answered = (): void => {
      // Decided without the store: it is unknown whether the caller exceeded the limit.
      if (batch.failure === undefined) then()
    }
    try {
      const answer = store.decide(batch)
      if (store.mode === 'sync') answered()
      else (answer as Promise<void>).then(answered).catch((error: unknown) => this.#failed(error))
    } catch (error) {
      // The request has already been denied: an error here must not affect its caller.
      this.#failed(error)
    }
  }

  /**
   * Blocks a caller. An active block is not extended: one of this rule is written again, because the store may have
   * lost it; during any other block, the denials are forgotten.
   */
  #block({ rule, entity, key, limits, nowMs }: Violation): void {
    const { live } = this.#parts
    const { penalty, penaltyLimits, name } = rule
    const { denials } = penaltyLimits!
    // In the canonical spelling, by which blocks are stored, found and lifted.
    const { dimension } = rule.reader
    const running = live.blockOf(dimension, entity, nowMs)
    if (running !== undefined && running.rule !== name) {
      this.#change((store) => store.reset([denials], key))
      return
    }
    const previous = live.strikesOf(dimension, entity, nowMs)
    const block = running ?? nextBlock({ penalty: penalty!, previous, nowMs, dimension, entity, rule: name })
    if (running === undefined) this.keep(block, nowMs)
    const micros = (block.until - nowMs) * MICROS_PER_MS
    // The rule comes first: a blocked counter with an unblocked rule would not count denials.
    this.#change((store) => store.block(name, key, penalty?.reset ? { micros, forgotten: limits } : micros))
    this.#change((store) => store.block(denials.rule, key, { micros, forgotten: [denials] }))
  }

  /** Changes something in the store. Does not wait. */
  #change(change: (store: Store) => void | Promise<void>): void {
    try {
      const answer = change(this.#parts.store)
      if (answer instanceof Promise) answer.catch((error: unknown) => this.#failed(error))
    } catch (error) {
      this.#failed(error)
    }
  }

  #failed(error: unknown): void {
    tellPolicy(this.#parts.observer, { type: 'penalty-failed', error })
  }
}

/** A denied request, and when. */
interface DeniedRequest {
  readonly request: PolicyRequest
  /** Milliseconds since 1970. */
  readonly nowMs: number
}

/** Who was denied by which rule. */
interface Violation {
  readonly rule: CompiledRule
  readonly entity: string
  readonly key: string
  /** The limits of the rule that decided. */
  readonly limits: readonly Limit[]
  /** Time of the request in milliseconds since 1970. */
  readonly nowMs: number
}

/**
 * A limit that only tells whether its rule has blocked a caller. Not one of the rule's own limits: there may be none,
 * and their states may be too large for the store.
 */
function blockOnly(rule: string): Limit {
  return compileRule(rule, { limit: 1, window: '1s' })[0]!
}
