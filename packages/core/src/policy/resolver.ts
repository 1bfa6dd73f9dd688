import { SluiceError } from '../errors.ts'
import type { Limit } from '../rule/limit.ts'
import { createItem } from '../store/batch.ts'
import type { Item } from '../store/store.ts'
import type { LiveEntries } from './entries/live-entries.ts'
import type { Block, OverrideTerms } from './entries/live-entry.ts'
import { CompiledRule } from './limits/compiled-rule.ts'
import type { DimensionReader, DimensionReaders } from './limits/dimension-reader.ts'
import type { LimitModification } from './limits/effective-rule.ts'
import type { HoldingRules } from './limits/rule-choice.ts'
import { RuleChoice } from './limits/rule-choice.ts'
import type { PolicyDecision } from './policy-decision.ts'
import { ruled } from './policy-decision.ts'
import type { PolicyObserver } from './policy-event.ts'
import { tellPolicy } from './policy-event.ts'
import type { PolicyRequest } from './rule-set/policy-request.ts'
import type { DenyEntry } from './rule-set/rule-set.ts'
import { KNOWN_DIMENSIONS } from './rule-set/rule-set.ts'
import type { CompiledExemption, CompiledTier, Snapshot } from './snapshot.ts'

/** Source of a tier. */
export interface FoundTier {
  readonly tier: CompiledTier
  /** `request`, or the dimension whose entity is a member. */
  readonly from: string
}

/** Order in which the identities of a request are searched for a tier. */
const TIER_DIMENSIONS = ['user', 'apiKey', 'tenant'] as const

/** What one rule charges a request. */
export class RuleQuestion {
  readonly rule: CompiledRule
  readonly items: readonly Item[]

  constructor(rule: CompiledRule, items: readonly Item[]) {
    this.rule = rule
    this.items = items
  }
}

class Modification implements LimitModification {
  terms: OverrideTerms | undefined = undefined
  factor = 1
  burst = 0
  entitled = false
}

const NONE: readonly RuleQuestion[] = Object.freeze([])

/** A request, the rules that apply to it, and their limits. */
export class ResolvedRequest {
  readonly version: number
  /** The decision, if no limit must be checked. */
  ruling: PolicyDecision | undefined = undefined
  /** Enforced limits, decided together. */
  readonly items: Item[] = []
  /** The rule of each item. */
  readonly rules: CompiledRule[] = []
  /** Rules that are measured only. */
  shadows: readonly RuleQuestion[] = NONE
  holdsSlots = false
  /** Whether an enforced rule matches that does not limit the caller. */
  isOff = false
  /** Whether no enforced rule, entry of the deny list, block or exemption matches. */
  isUnmatched = false

  constructor(version: number) {
    this.version = version
  }

  push(rule: CompiledRule, item: Item): void {
    this.items.push(item)
    this.rules.push(rule)
    if (item.limit.algorithm === 'concurrency') this.holdsSlots = true
  }

  rule(ruling: PolicyDecision): this {
    this.ruling = ruling
    return this
  }
}

/** Finds the rules that apply to a request, and their limits. */
export class Resolver {
  readonly #live: LiveEntries
  readonly #readers: DimensionReaders
  readonly #observer: PolicyObserver | undefined
  readonly #modification = new Modification()

  constructor(live: LiveEntries, readers: DimensionReaders, observer: PolicyObserver | undefined) {
    this.#live = live
    this.#readers = readers
    this.#observer = observer
  }

  /**
   * Resolves which rules decide a request. Order: deny list, blocks, exemptions, rules. An explicit denial wins over
   * everything else.
   */
  resolve(snapshot: Snapshot, request: PolicyRequest, nowMs: number): ResolvedRequest {
    const resolved = new ResolvedRequest(snapshot.version)
    const ruling = this.#denial(snapshot, request, nowMs)
    if (ruling !== undefined) return resolved.rule(ruling)
    const exemption = this.exemptionOf(snapshot, request, nowMs)
    if (exemption !== undefined && exemption.rules === undefined) {
      return resolved.rule(passing(snapshot, 'exempt', exemption.exemption.name))
    }
    const { resource, method } = request
    const tier = this.tierOf(snapshot, request, nowMs)?.tier
    const table = exemption?.rules ?? snapshot.rules
    const found =
      tier !== undefined && exemption === undefined ? tier.find(table, resource, method) : table.find(resource, method)
    const context = this.contextOf(request, tier, nowMs)
    this.#addAll(resolved, found, context)
    if (resolved.items.length === 0 && !resolved.isOff) {
      resolved.isUnmatched = true
      const rule = snapshot.defaultRuleFor(request)
      if (rule !== undefined) this.#add(resolved, rule, context)
    }
    if (resolved.items.length === 0) resolved.rule(passing(snapshot, 'unlimited', ''))
    return resolved
  }

  /** What the rules of a request are resolved with. */
  contextOf(request: PolicyRequest, tier: CompiledTier | undefined, nowMs: number): ResolveContext {
    return new ResolveContext(request, tier, { live: this.#live, nowMs })
  }

  /** The entity of a request in a dimension. */
  entityOf(request: PolicyRequest, dimension: string): string | undefined {
    return this.readerOf(dimension).read(request)
  }

  readerOf(dimension: string): DimensionReader {
    return this.#readers.of(dimension)
  }

  /** The entry of the deny list that denies a request. */
  denialOf(snapshot: Snapshot, request: PolicyRequest, nowMs: number): DenyEntry | undefined {
    if (snapshot.denyList.isEmpty) return undefined
    return snapshot.denyList.find(request, (dimension) => this.entityOf(request, dimension), nowMs)
  }

  exemptionOf(snapshot: Snapshot, request: PolicyRequest, nowMs: number): CompiledExemption | undefined {
    if (snapshot.exemptions.isEmpty) return undefined
    return snapshot.exemptions.find(request, (dimension) => this.entityOf(request, dimension), nowMs)
  }

  /** The tier of a request: the one it names, or that of the first of its identities that is a member of one. */
  tierOf(snapshot: Snapshot, request: PolicyRequest, nowMs: number): FoundTier | undefined {
    if (snapshot.tiers.size === 0) return undefined
    if (request.tier !== undefined) {
      const tier = snapshot.tiers.get(request.tier)
      return tier === undefined ? undefined : { tier, from: 'request' }
    }
    if (!this.#live.hasMembers) return undefined
    for (const dimension of TIER_DIMENSIONS) {
      const entity = request[dimension]
      const name = entity === undefined ? undefined : this.#live.tierOf(dimension, entity, nowMs)
      const tier = name === undefined ? undefined : snapshot.tiers.get(name)
      if (tier !== undefined) return { tier, from: dimension }
    }
    return undefined
  }

  /** The block that denies a request. */
  blockOf(snapshot: Snapshot, request: PolicyRequest, nowMs: number): Block | undefined {
    if (!this.#live.hasBlocks) return undefined
    for (const dimension of KNOWN_DIMENSIONS) {
      const block = this.#blockIn(dimension, request, nowMs)
      if (block !== undefined) return block
    }
    for (const dimension of snapshot.furtherDimensions) {
      const block = this.#blockIn(dimension, request, nowMs)
      if (block !== undefined) return block
    }
    return undefined
  }

  /** What changes the numbers of a rule for a caller. The object is reused by the next call. */
  modificationOf(rule: CompiledRule, entity: string, context: ResolveContext): LimitModification {
    const { request, tier, nowMs } = context
    const modification = this.#modification
    const terms = this.#live.hasOverrides ? this.#live.overrideFor(rule.overrides, entity, nowMs) : undefined
    modification.terms = terms
    modification.burst = 0
    modification.entitled = tier?.isEntitled === true
    let factor = context.isIncident ? rule.incidentFactor : 1
    if (rule.guard !== undefined) factor *= rule.guard.factorAt(nowMs)
    const cuts = factor
    if (terms === undefined) {
      factor *= rule.regionFactor(request.region)
      if (rule.schedule !== undefined) factor *= rule.schedule.multiplierAt(nowMs)
      if (tier !== undefined && rule.isTiered) {
        // Factors also apply to the burst.
        modification.burst = Math.floor(tier.burst * cuts)
        factor *= tier.multiplier
      }
    }
    modification.factor = factor
    return modification
  }

  /** The limits of a rule for a caller. */
  limitsOf(rule: CompiledRule, entity: string, context: ResolveContext): readonly Limit[] {
    if (rule.isSteady && context.isPlain) return rule.own
    const modification = this.modificationOf(rule, entity, context)
    const { terms } = modification
    if (terms === undefined) return rule.effective.limitsFor(modification)
    const { limits, problem } = rule.effective.variantFor(
      modification as LimitModification & { readonly terms: OverrideTerms },
    )
    if (problem !== undefined) {
      tellPolicy(this.#observer, { type: 'override-unusable', rule: rule.name, terms, problem })
    }
    return limits
  }

  #addAll(resolved: ResolvedRequest, found: HoldingRules, context: ResolveContext): void {
    if (found instanceof CompiledRule) {
      this.#add(resolved, found, context)
      return
    }
    const choice = found instanceof RuleChoice ? found : undefined
    const rules = choice === undefined ? (found as readonly CompiledRule[]) : choice.rules
    for (let index = 0; index < rules.length; index++) {
      if (choice === undefined || choice.holds(index, context.request)) this.#add(resolved, rules[index]!, context)
    }
  }

  #add(resolved: ResolvedRequest, rule: CompiledRule, context: ResolveContext): void {
    const entity = rule.reader.read(context.request)
    if (entity === undefined) return
    const only = rule.isPlain && context.isUnchanged ? this.#onlyOf(rule, entity, context) : undefined
    if (only !== undefined) {
      const units = rule.plainCost(context.request.cost ?? 1)
      resolved.push(rule, createItem(only, rule.reader.keyOf(entity), units))
      return
    }
    const limits = this.limitsOf(rule, entity, context)
    if (limits.length === 0) {
      if (rule.isEnforcedFor(entity)) resolved.isOff = true
      return
    }
    const cost = rule.costOf(context.request, context.request.cost ?? 1)
    const key = rule.reader.keyOf(entity)
    if (!rule.isEnforcedFor(entity)) {
      const items = limits.map((limit) => createItem(limit, key, cost))
      resolved.shadows = [...resolved.shadows, new RuleQuestion(rule, items)]
      return
    }
    for (const limit of limits) resolved.push(rule, createItem(limit, key, cost))
  }

  /**
   * The only limit of a plain rule whose numbers only an override can change; undefined if there is not exactly one.
   */
  #onlyOf(rule: CompiledRule, entity: string, context: ResolveContext): Limit | undefined {
    if (context.isPlain) return rule.only
    const terms = this.#live.overrideFor(rule.overrides, entity, context.nowMs)
    return terms === undefined ? rule.only : rule.onlyUnder(terms)
  }

  #denial(snapshot: Snapshot, request: PolicyRequest, nowMs: number): PolicyDecision | undefined {
    const entry = this.denialOf(snapshot, request, nowMs)
    if (entry !== undefined) {
      return ruled({
        allowed: false,
        reason: 'denied',
        rule: entry.name,
        dimension: entry.match.dimension ?? '',
        retryAfterMs: entry.expiresAt === undefined ? Number.POSITIVE_INFINITY : Math.ceil(entry.expiresAt - nowMs),
        resetAt: entry.expiresAt ?? 0,
        version: snapshot.version,
      })
    }
    const block = this.blockOf(snapshot, request, nowMs)
    if (block === undefined) return undefined
    return ruled({
      allowed: false,
      reason: 'blocked',
      rule: block.rule ?? '',
      dimension: block.dimension,
      retryAfterMs: Math.ceil(block.until - nowMs),
      resetAt: block.until,
      version: snapshot.version,
    })
  }

  #blockIn(dimension: string, request: PolicyRequest, nowMs: number): Block | undefined {
    const reader = this.#readers.of(dimension)
    const entity = reader.read(request)
    return entity === undefined ? undefined : this.#live.blockOf(reader.dimension, entity, nowMs)
  }
}

/** What a rule is resolved for. */
export class ResolveContext {
  readonly request: PolicyRequest
  readonly tier: CompiledTier | undefined
  readonly nowMs: number
  readonly isIncident: boolean
  /** Whether only overrides change the numbers of rules, apart from the rules themselves. */
  readonly isUnchanged: boolean
  /** Whether overrides do not change them either. */
  readonly isPlain: boolean

  constructor(request: PolicyRequest, tier: CompiledTier | undefined, { live, nowMs }: Moment) {
    this.request = request
    this.tier = tier
    this.nowMs = nowMs
    this.isIncident = live.isIncident(nowMs)
    this.isUnchanged = tier === undefined && !this.isIncident
    this.isPlain = this.isUnchanged && !live.hasOverrides
  }
}

interface Moment {
  readonly live: LiveEntries
  readonly nowMs: number
}

/** Throws `SLUICE_INVALID_OPTION` unless the request has a resource. */
export function checkRequest(request: PolicyRequest): void {
  if (typeof request?.resource === 'string' && request.resource !== '') return
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: 'the request does not say what is called',
    received: request?.resource,
    expected: 'a "resource": a path such as "/orders/17", or a name',
  })
}

function passing(snapshot: Snapshot, reason: 'exempt' | 'unlimited', rule: string): PolicyDecision {
  const { version } = snapshot
  return ruled({ allowed: true, reason, rule, dimension: '', retryAfterMs: 0, resetAt: 0, version })
}
