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

/** What a {@link PenaltyTracker} works with. */
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
  /** What counts denials, where there is or was a penalty. */
  readonly penaltyLimits: PenaltyLimits | undefined
}

/** A caller whose block is to be lifted. */
export interface BlockedCaller {
  readonly reader: DimensionReader
  /** As requests give it. */
  readonly entity: string
  /** A rule that is said to have blocked it. */
  readonly rule: string | undefined
}

/** Who did what, and when. */
export interface OffendingCaller {
  readonly reader: DimensionReader
  /** In any spelling. */
  readonly entity: string
  readonly offence: Offence
  /** Milliseconds since 1970. */
  readonly nowMs: number
}

/** Offences whose limits are kept. A configuration has fewer. */
const MOST_OFFENCES = 4096

/**
 * Counts the denials of rules with a penalty, and blocks callers that have too many. Denials are counted in the store,
 * by all nodes together; {@link PenaltyLimits} says how one violation causes one block. A block holds at once on this
 * node, and in the store for the rule that led to it; everywhere else when it has been handed on.
 */
export class PenaltyTracker {
  readonly #parts: PenaltyTrackerParts
  /** The limits of offences, by everything that they depend on: stores know limits by their object. */
  readonly #offences = new Map<string, PenaltyLimits>()

  constructor(parts: PenaltyTrackerParts) {
    this.#parts = parts
  }

  /** Takes note of a denied request. `rules`: the rule of each item of its batch. */
  denied(batch: Batch, rules: readonly CompiledRule[], { request, nowMs }: DeniedRequest): void {
    // Without the store nothing says that the caller went too far.
    if (batch.failure !== undefined) return
    let previous: CompiledRule | undefined
    for (const [index, item] of batch.items.entries()) {
      const rule = rules[index]!
      if (rule.reader.hasAddress && this.#parts.unblocked.has(request.ip!)) continue
      const isDenied = item.verdict.ruling !== 'allowed' && item.blockedUntil <= batch.now
      // The windows of a rule come one after another, and are one denial.
      if (!isDenied || rule.penaltyLimits === undefined || rule === previous) continue
      previous = rule
      const limits = batch.items.flatMap(({ limit }, other) => (rules[other] === rule ? [limit] : []))
      const violation = { rule, entity: rule.reader.read(request)!, key: item.key, limits, nowMs }
      this.#count(rule.penaltyLimits, item.key, { full: () => this.#block(violation), blocked: () => undefined })
    }
  }

  /** Takes note of an offence. */
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
   * Counts one violation of a caller. Calls `full` on one node when there are enough of them, and `blocked` with the
   * rest of the block, in milliseconds, when the store knows that the caller is blocked for them already.
   */
  #count(
    { denials, claim }: PenaltyLimits,
    key: string,
    then: { readonly full: () => void; readonly blocked: (restMs: number) => void },
  ): void {
    const count = createBatch([createItem(denials, key, 1)])
    const bid = createBatch([createItem(claim, key, 1)])
    // The same for one unit, but not answered from a deny cache, nor from a lease: only the store knows who was
    // first.
    bid.partial = true
    this.#decide(count, () => {
      const { verdict, blockedUntil } = count.items[0]!
      if (blockedUntil > count.now) then.blocked((blockedUntil - count.now) / MICROS_PER_MS)
      else if (verdict.remaining === 0) {
        // A denied claim was granted to another node, or the caller is blocked already.
        this.#decide(bid, () => void (bid.allowed && then.full()))
      }
    })
  }

  /** Puts a block in force here and hands it on. */
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
   * Lifts the block of a caller here and in the store, under all of these rules and under those that caller and block
   * name, and forgets the denials that led to it. False when nothing was blocked. Rejects when the store cannot be
   * asked; here the caller is let in all the same.
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
    // Lifted whatever was seen, which may be from a moment ago.
    await Promise.all([
      ...Array.from(names, (name) => store.block(name, key, 0)),
      ...Array.from(names, (name) => store.block(penaltyName(name), key, 0)),
      ...counted.map(({ denials, claim }) => store.reset([denials, claim], key)),
    ])
    return wasHere || looks.some(({ items, now }) => items[0]!.blockedUntil > now)
  }

  /** Lifts what a block put into the store, for the rule that it names. Does not wait. */
  liftInStore(reader: DimensionReader, { rule, entity }: Block): void {
    if (rule === undefined) return
    const key = reader.keyOf(entity)
    for (const name of [rule, penaltyName(rule)]) this.#change((store) => store.block(name, key, 0))
  }

  /** Calls the store, and goes on with its result. Does not wait. */
  #decide(batch: Batch, then: () => void): void {
    const { store } = this.#parts
    const answered = (): void => {
      // Decided without the store: nothing says that the caller went too far.
      if (batch.failure === undefined) then()
    }
    try {
      const answer = store.decide(batch)
      if (store.mode === 'sync') answered()
      else (answer as Promise<void>).then(answered).catch((error: unknown) => this.#failed(error))
    } catch (error) {
      // The request was denied already: what goes wrong here is not its caller's business.
      this.#failed(error)
    }
  }

  /**
   * Blocks a caller. A block that is running is not made longer: one of this rule is written again, because the store
   * may have lost it; during any other one, the denials are forgotten.
   */
  #block({ rule, entity, key, limits, nowMs }: Violation): void {
    const { live } = this.#parts
    const { penalty, penaltyLimits, name } = rule
    const { denials } = penaltyLimits!
    // Not as the rule spells it: blocks are kept, found and lifted under the one order of names.
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
    // The rule comes first: a counter that is blocked while its rule is not would count no denials.
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

/** A request that was denied, and when. */
interface DeniedRequest {
  readonly request: PolicyRequest
  /** Milliseconds since 1970. */
  readonly nowMs: number
}

/** Who was denied by what. */
interface Violation {
  readonly rule: CompiledRule
  readonly entity: string
  readonly key: string
  /** The limits of the rule that decided. */
  readonly limits: readonly Limit[]
  /** When the request came; milliseconds since 1970. */
  readonly nowMs: number
}

/**
 * A limit that only tells whether its rule has blocked a caller. Not one of the rule's own, which may have none, and
 * whose states may be large, or too large for the store.
 */
function blockOnly(rule: string): Limit {
  return compileRule(rule, { limit: 1, window: '1s' })[0]!
}
