import { LATEST } from '../algorithms/algorithm.ts'
import type { Obstacle } from '../limiter/acquire.ts'
import { waitForTurn } from '../limiter/acquire.ts'
import { checkRefunded, checkUncharged } from '../limiter/argument-check.ts'
import { decisionOn, decisionOnOne } from '../limiter/decision.ts'
import { KeyQueue } from '../limiter/key-queue.ts'
import { notePlace } from '../limiter/limiter-registry.ts'
import { onRelease, reset, settle } from '../limiter/release-listeners.ts'
import { chargedBy, decide, deliver, refund } from '../limiter/rule-limiter.ts'
import { checkMaxWaiting, checkOptionNames, checkSignal, checkSources, checkWhole } from '../options/known-options.ts'
import type { Duration } from '../rule/duration.ts'
import { durationMicros, durationMs } from '../rule/duration.ts'
import type { Limit } from '../rule/limit.ts'
import { LARGEST_UNITS } from '../rule/rule-options.ts'
import { checkCost, createBatch, drawHolder, receiptOf } from '../store/batch.ts'
import type { Answer, Batch, Mode, Settlement, Store } from '../store/store.ts'
import type { Clock, Timers } from '../system/clock-and-timers.ts'
import { MICROS_PER_MS, systemClock, systemTimers } from '../system/clock-and-timers.ts'
import type { Random } from '../system/random.ts'
import { systemRandom } from '../system/random.ts'
import { lookAt } from './counter-report.ts'
import type { DescriptorDecision } from './descriptors/descriptor-decision.ts'
import type { DescriptorOptions } from './descriptors/descriptor-engine.ts'
import { decideDescriptors } from './descriptors/descriptor-engine.ts'
import type { DescriptorRequest } from './descriptors/descriptor-request.ts'
import { type EngineEntries, LiveEntries } from './entries/live-entries.ts'
import type { Block } from './entries/live-entry.ts'
import { UnblockedAddresses } from './entries/unblocked-addresses.ts'
import type { Explanation } from './explain-decision.ts'
import { explainRules, withCounters } from './explain-decision.ts'
import { DimensionReaders } from './limits/dimension-reader.ts'
import { DEFAULT_IPV6_PREFIX_LENGTH } from './matching/ip-address.ts'
import { readPath } from './matching/path.ts'
import { PenaltyTracker } from './penalty-tracker.ts'
import type { PolicyDecision } from './policy-decision.ts'
import { announcedOnly, policyDecision, storeDecisionOf } from './policy-decision.ts'
import {
  ACQUIRE,
  ENGINE,
  type Offence,
  type PolicyAcquireOptions,
  type PolicyEngineOptions,
  type PolicyReserveOptions,
  RESERVE,
  VERSIONS,
} from './policy-engine-options.ts'
import type { PolicyObserver } from './policy-event.ts'
import { tellPolicy } from './policy-event.ts'
import type { PolicyReservation, ReservationClaim } from './policy-reservation.ts'
import { createPolicyReservation, EMPTY_CLAIM, renewClaim, settleClaim } from './policy-reservation.ts'
import type { PolicyVersions } from './policy-versions.ts'
import { VersionSelector } from './policy-versions.ts'
import type { ResolvedRequest } from './resolver.ts'
import { checkRequest, Resolver } from './resolver.ts'
import type { PolicyRequest } from './rule-set/policy-request.ts'
import type { UndeclaredDimension } from './rule-set/undeclared-dimensions.ts'
import { ShadowRunner } from './shadow-runner.ts'
import { decideEach, whenAnswered } from './store-answer.ts'
import type { Caller, RuleCounters, UsageReport } from './usage-report.ts'
import { countersOf, ownerOf, usageReports } from './usage-report.ts'

/**
 * Maximum pause of a waiting request between two polls, in milliseconds: rules and overrides may change at any time.
 */
const LONGEST_PAUSE_MS = 1000

/**
 * Applies a rule set to requests: finds the rules that apply, computes their limits, and decides all of them in one
 * atomic step. Results are immediate on a local store and promises on a remote one. Rule sets and entries may change at
 * any time; changes apply from the next request on.
 */
export class PolicyEngine<M extends Mode = Mode> {
  /** Overrides, memberships, blocks and the incident switch. Changes apply from the next request on. */
  readonly entries: EngineEntries
  readonly #live: LiveEntries
  readonly #store: Store<M>
  readonly #clock: Clock
  readonly #random: Random
  readonly #versions: VersionSelector
  readonly #resolver: Resolver
  readonly #shadows: ShadowRunner
  readonly #penalties: PenaltyTracker
  readonly #observer: PolicyObserver | undefined
  readonly #timers: Timers
  readonly #queue = new KeyQueue()
  readonly #maxWaiting: number

  constructor(options: PolicyEngineOptions<M>) {
    checkOptionNames(options, ENGINE)
    checkSources(options)
    const { store, ruleSet, clock = systemClock, random = systemRandom, costFunctions = {}, observer } = options
    this.#timers = options.timers ?? systemTimers
    this.#maxWaiting = checkMaxWaiting(options.maxWaiting)
    this.#store = store
    this.#clock = clock
    this.#random = random
    this.#observer = observer
    notePlace(this, { store, rules: [] })
    const ipv6PrefixLength = checkWhole('ipv6PrefixLength', options.ipv6PrefixLength ?? DEFAULT_IPV6_PREFIX_LENGTH, {
      most: 128,
    })
    const readers = new DimensionReaders({ ipv6PrefixLength })
    const lift = (block: Block): void => this.#penalties.liftInStore(readers.of(block.dimension), block)
    const live = new LiveEntries({ random, clock, ipv6PrefixLength, lift, apiKeyDigest: options.apiKeyDigest })
    this.#live = live
    this.entries = live
    const unblocked = new UnblockedAddresses(options.neverBlock ?? [], ipv6PrefixLength)
    this.#penalties = new PenaltyTracker({ store, live, keepBlock: options.keepBlock, observer, unblocked })
    this.#versions = new VersionSelector({ readers, costFunctions, defaultRule: options.defaultRule })
    this.#resolver = new Resolver(live, readers, observer)
    this.#shadows = new ShadowRunner(store, observer)
    if (ruleSet !== undefined) this.use({ enforced: { number: 0, ruleSet } })
  }

  /** Number of the enforced version; 0 if it has none. */
  get version(): number {
    return this.#versions.enforced.version
  }

  /** Dimensions of the active rule sets that are neither built in nor declared: requests may not have them. */
  get undeclaredDimensions(): readonly (UndeclaredDimension & { readonly version: number })[] {
    return this.#versions.undeclaredDimensions
  }

  /** How many enabled rules of the enforced version an incident changes. */
  get incidentRules(): number {
    return this.#versions.enforced.allRules.filter(
      ({ rule, incidentFactor }) => rule.enabled !== false && incidentFactor !== 1,
    ).length
  }

  /** Replaces the rule sets, from the next request on. Throws `SLUICE_INVALID_RULE_SET` and keeps the previous ones. */
  use(versions: PolicyVersions): void {
    checkOptionNames(versions, VERSIONS)
    this.#versions.use(versions)
    for (const burst of this.#versions.unusableBursts) tellPolicy(this.#observer, { type: 'burst-unusable', ...burst })
    for (const one of this.undeclaredDimensions) tellPolicy(this.#observer, { type: 'dimension-undeclared', ...one })
  }

  /** Decides, and charges if allowed. A denied request costs nothing under any of its limits. */
  check(request: PolicyRequest): Answer<M, PolicyDecision> {
    return this.#decide(request, true)
  }

  /** What `check` would return, without charging. */
  peek(request: PolicyRequest): Answer<M, PolicyDecision> {
    return this.#decide(request, false)
  }

  /** Charges units in advance, or takes slots; settle or release them later. */
  reserve(
    request: PolicyRequest,
    options: PolicyReserveOptions = {},
  ): Answer<M, PolicyReservation<M> | PolicyDecision> {
    checkOptionNames(options, RESERVE)
    const store = this.#store
    const nowMs = this.#begin(request)
    const resolved = this.#resolve(request, nowMs)
    const { ruling } = resolved
    if (resolved.isUnmatched) this.#tellUnmatched(resolved, request)
    if (ruling !== undefined) {
      return deliver(store, ruling.allowed ? createPolicyReservation(store, ruling, EMPTY_CLAIM) : ruling)
    }
    const batch = this.#batchOf(resolved)
    batch.holder = drawHolder(this.#random)
    batch.holdMicros = resolved.holdsSlots ? 0 : durationMicros(options.expiresAfter ?? '1m', 'expiresAfter')
    const finish = (answered: Batch): PolicyReservation<M> | PolicyDecision => {
      const receipt = answered.allowed ? receiptOf(answered) : undefined
      const decision = policyDecision(
        decisionOn(answered, receipt, announcedOnly(resolved.rules)),
        resolved.rules,
        resolved.version,
      )
      this.#follow(decision, answered, { resolved, request, nowMs })
      if (receipt === undefined) return decision
      return createPolicyReservation(store, decision, { receipt, cost: request.cost ?? 1 })
    }
    return decide(store, batch, { finish })
  }

  /**
   * Waits until the request is allowed, and charges like `reserve`. Requests with the same counters are served in order
   * of arrival. A slot that this process releases goes to the next one at once; one of another process is found within
   * 100 ms, or 1 ms per set of waiting counters if that is longer. Waiting does not count as denials; a denial at the
   * end counts as one. Resolves with a decision if waiting cannot help, `maxWait` is over, or too many are already
   * waiting.
   */
  async acquire(
    request: PolicyRequest,
    options: PolicyAcquireOptions = {},
  ): Promise<PolicyReservation<M> | PolicyDecision> {
    type Taken = PolicyReservation<M> | PolicyDecision
    checkOptionNames(options, ACQUIRE)
    const { maxWait, signal, ...reserving } = options
    checkSignal(signal)
    const maxWaitMs = maxWait === undefined ? Number.POSITIVE_INFINITY : durationMs(maxWait, 'maxWait')
    const { items, holdsSlots, ruling } = this.#resolve(request, this.#begin(request))
    const take = async (): Promise<Taken> => (await this.reserve(request, reserving)) as Taken
    if (ruling !== undefined) return await take()
    const obstacleTo = (answer: Taken): Obstacle | undefined => {
      if ('claim' in answer || answer.reason !== 'limit') return undefined
      return { waitsFor: holdsSlots ? 'slot' : 'time', retryAfterMs: answer.retryAfterMs }
    }
    const clock = this.#clock
    return await waitForTurn<Taken>({
      attempt: async () => {
        const seen = await this.peek(request)
        return obstacleTo(seen) === undefined ? await take() : seen
      },
      obstacleTo,
      giveUp: take,
      giveBack: async (answer) => void ('claim' in answer && (await answer.release())),
      onRelease: (listener) => onRelease(this.#store, items, listener),
      queue: this.#queue,
      key: JSON.stringify(items.map(({ limit, key }) => [limit.id, key])),
      deadlineMicros: clock.nowMicros() + maxWaitMs * MICROS_PER_MS,
      longestPauseMs: LONGEST_PAUSE_MS,
      clock,
      timers: this.#timers,
      signal,
      maxWaiting: this.#maxWaiting,
    })
  }

  /** Decides a request with descriptors, as in the Envoy protocol, by the descriptor trees of the rule set. */
  decideDescriptors(request: DescriptorRequest, options?: DescriptorOptions): Answer<M, DescriptorDecision> {
    return decideDescriptors({ store: this.#store, tree: this.#versions.enforced.descriptors }, request, options)
  }

  /** Like `PolicyReservation.settle`, for a claim that may come from another process. Settle each once. */
  settle(claim: ReservationClaim, actual: number): Answer<M, Settlement> {
    return settleClaim(this.#store, claim, actual)
  }

  /** Like `PolicyReservation.renew`, for a claim that may come from another process. */
  renew(claim: ReservationClaim): Answer<M, Settlement> {
    return renewClaim(this.#store, claim)
  }

  /** Returns units of an earlier decision, and its slots: all, or `units` of them. */
  refund(decision: PolicyDecision, units?: number): Answer<M, Settlement> {
    checkRefunded(decision)
    const decided = storeDecisionOf(decision)
    if (decided !== undefined) return refund(this.#store, decided, units)
    checkUncharged(decision)
    return deliver(this.#store, { outcome: 'settled', corrected: 0 })
  }

  /** Reports the outcome of an allowed request, for limits that are cut while too many fail. */
  report(request: Pick<PolicyRequest, 'resource' | 'method'>, failed: boolean): void {
    this.#versions.report(request, { failed, nowMs: this.#clock.nowMicros() / MICROS_PER_MS })
  }

  /** Every rule considered, why it applies or not, how its limit was computed, and what remains. Nothing is charged. */
  explain(request: PolicyRequest): Answer<M, Explanation> {
    const nowMs = this.#begin(request)
    const snapshot = this.#versions.snapshotFor(request)
    const resolver = this.#resolver
    const rules = explainRules(resolver, snapshot, { request, nowMs })
    const tier = resolver.tierOf(snapshot, request, nowMs)
    const about = {
      version: snapshot.version,
      readings: readPath(request.resource),
      denied: resolver.denialOf(snapshot, request, nowMs)?.name,
      block: resolver.blockOf(snapshot, request, nowMs),
      exemption: resolver.exemptionOf(snapshot, request, nowMs)?.exemption.name,
      tier: tier === undefined ? undefined : { name: tier.tier.name, from: tier.from },
    }
    // All batches are sent before the first result is awaited, so that they share one round trip.
    const decided = this.#decide(request, false)
    const looks = rules.map(({ look }) => look).filter((look) => look !== undefined)
    const looked = decideEach(this.#store, looks)
    const explained = (decision: PolicyDecision): Explanation => ({
      ...about,
      rules: rules.map(withCounters),
      decision,
    })
    if (this.#store.mode === 'sync') return explained(decided as PolicyDecision) as Answer<M, Explanation>
    return Promise.all([decided, looked]).then(([decision]) => explained(decision)) as Answer<M, Explanation>
  }

  /**
   * The state of every counter of the callers in a request: of the rules that match its resource, or of all rules
   * without a resource.
   */
  usage(who: Caller): Answer<M, readonly UsageReport[]> {
    const counters = this.#countersOf(who)
    const looks = counters.map(({ limits, key }) => lookAt(limits, key))
    return whenAnswered(this.#store, decideEach(this.#store, looks), (answered) => usageReports(counters, answered))
  }

  /**
   * Resets the usage of these callers: under the rules that match the resource, or under all without one. Resolves with
   * the rules and callers whose counters were reset, whether or not anything was counted.
   */
  async reset(who: Caller): Promise<readonly Omit<UsageReport, 'counters'>[]> {
    const counters = this.#countersOf(who)
    await Promise.all(counters.map(({ limits, key }) => reset(this.#store, limits, key)))
    return counters.map(ownerOf)
  }

  /**
   * Returns `units` that these callers have used, most recent first, never below zero use: under the rules that match
   * the resource, or under all without one. Slots and places in a queue cannot be returned. Resolves with the rules and
   * callers whose counters changed.
   */
  async giveBack(who: Caller, units: number): Promise<readonly Omit<UsageReport, 'counters'>[]> {
    checkWhole('units', units, { of: 'giveBack', least: 1, most: LARGEST_UNITS })
    const counters = this.#countersOf(who).filter(({ limits }) => limits.every(canGiveBack))
    await Promise.all(
      counters.map(({ limits, key }) => {
        const charges = limits.map((limit) => ({ limit, key, at: LATEST, cost: units, mark: 0 }))
        const receipt = { holder: 0, held: false, leaseMicros: 0, charges }
        return settle(
          this.#store,
          receipt,
          charges.map(() => 0),
        )
      }),
    )
    return counters.map(ownerOf)
  }

  /** Denies a caller everywhere for this long, and distributes the block. */
  block(dimension: string, entity: string, options: { readonly duration: Duration; readonly reason?: string }): Block {
    const { duration, reason } = options
    const nowMs = this.#clock.nowMicros() / MICROS_PER_MS
    const until = Math.ceil(nowMs + durationMs(duration, 'duration'))
    const reader = this.#resolver.readerOf(dimension)
    const name = reader.canonical(entity)
    const strikes = (this.#live.strikesOf(reader.dimension, name, nowMs)?.strikes ?? 0) + 1
    const why = reason === undefined ? {} : { reason }
    const block: Block = { dimension: reader.dimension, entity: name, until, strikes, forgottenAt: until, ...why }
    this.#penalties.keep(block, nowMs)
    return block
  }

  /**
   * Counts an offence of a caller, such as a failed login, towards a block. All nodes of the store count together. One
   * of them blocks the caller, distributes the block, and notes it in the store; a node that has not received the block
   * learns of it from the next offence of the caller. Addresses of `neverBlock` are not blocked, and nothing is counted
   * while the store is unavailable. Does not wait.
   */
  reportOffence(dimension: string, entity: string, offence: Offence): void {
    const reader = this.#resolver.readerOf(dimension)
    const nowMs = this.#clock.nowMicros() / MICROS_PER_MS
    this.#penalties.offended({ reader, entity, offence, nowMs })
  }

  /**
   * Lifts the block of a caller, whatever caused it, and forgets what led to it: effective from the next request on.
   * Covers every rule that may have blocked the caller, including those of tiers, exemptions and candidates, and rules
   * whose penalty was removed or that no longer exist. `rule`: another rule to include, such as the one that a stored
   * block names and this engine does not know. False if neither this engine nor the store knows of a block.
   */
  async unblock(dimension: string, entity: string, { rule }: { readonly rule?: string } = {}): Promise<boolean> {
    const nowMs = this.#clock.nowMicros() / MICROS_PER_MS
    const reader = this.#resolver.readerOf(dimension)
    const rules = this.#versions.blockingRules(reader.dimension)
    return await this.#penalties.lift({ reader, entity: reader.canonical(entity), rule }, rules, nowMs)
  }

  #countersOf(who: Caller): readonly RuleCounters[] {
    const snapshot = this.#versions.snapshotFor({ ...who, resource: who.resource ?? '*' })
    return countersOf(this.#resolver, snapshot, { who, nowMs: this.#clock.nowMicros() / MICROS_PER_MS })
  }

  #decide(request: PolicyRequest, charge: boolean): Answer<M, PolicyDecision> {
    const nowMs = this.#begin(request)
    const resolved = this.#resolve(request, nowMs)
    if (charge && resolved.isUnmatched) this.#tellUnmatched(resolved, request)
    if (resolved.ruling !== undefined) {
      if (charge && resolved.ruling.allowed) this.#measure(resolved, request, nowMs)
      return deliver(this.#store, resolved.ruling)
    }
    const batch = this.#batchOf(resolved)
    batch.charge = charge
    const finish = (answered: Batch): PolicyDecision => {
      // A decision on one limit remembers its own charge.
      const isOne = answered.items.length === 1 && answered.holder === 0
      const decided = isOne
        ? decisionOnOne(answered)
        : decisionOn(answered, chargedBy(answered), announcedOnly(resolved.rules))
      const decision = policyDecision(decided, resolved.rules, resolved.version)
      if (charge) this.#follow(decision, answered, { resolved, request, nowMs })
      return decision
    }
    return decide(this.#store, batch, { finish })
  }

  /** Checks a request, and reads the clock once. */
  #begin(request: PolicyRequest): number {
    checkRequest(request)
    if (request.cost !== undefined) checkCost(request.cost)
    return this.#clock.nowMicros() / MICROS_PER_MS
  }

  #resolve(request: PolicyRequest, nowMs: number): ResolvedRequest {
    return this.#resolver.resolve(this.#versions.snapshotFor(request), request, nowMs)
  }

  #batchOf(resolved: ResolvedRequest): Batch {
    const batch = createBatch(resolved.items)
    if (resolved.holdsSlots) batch.holder = drawHolder(this.#random)
    return batch
  }

  #tellUnmatched({ version }: ResolvedRequest, request: PolicyRequest): void {
    tellPolicy(this.#observer, { type: 'unmatched', request, version })
  }

  /** Work after a decision. */
  #follow(decision: PolicyDecision, batch: Batch, { resolved, request, nowMs }: Decided): void {
    if (decision.allowed) this.#measure(resolved, request, nowMs)
    else this.#penalties.denied(batch, resolved.rules, { request, nowMs })
  }

  /** Evaluates rules that are not enforced. Must not fail a request that has been decided. */
  #measure(resolved: ResolvedRequest, request: PolicyRequest, nowMs: number): void {
    try {
      this.#measureShadows(resolved, request, nowMs)
    } catch (error) {
      tellPolicy(this.#observer, { type: 'shadow-failed', error })
    }
  }

  #measureShadows(resolved: ResolvedRequest, request: PolicyRequest, nowMs: number): void {
    if (resolved.shadows.length > 0) this.#shadows.measureRules(resolved, () => drawHolder(this.#random))
    const snapshot = this.#versions.measuredFor(request)
    if (snapshot === undefined) return
    const { items, rules, holdsSlots, ruling } = this.#resolver.resolve(snapshot, request, nowMs)
    const { version } = snapshot
    if (ruling !== undefined) {
      const { allowed, rule, dimension } = ruling
      tellPolicy(this.#observer, { type: 'shadow', rule, dimension, allowed, version })
      return
    }
    const holder = holdsSlots ? drawHolder(this.#random) : 0
    this.#shadows.measure({ items, rules, version, holder })
  }
}

interface Decided {
  readonly resolved: ResolvedRequest
  readonly request: PolicyRequest
  readonly nowMs: number
}

/** Slots belong to their holders, and calls in a queue already have their delay. */
function canGiveBack({ algorithm }: Limit): boolean {
  return algorithm !== 'concurrency' && algorithm !== 'leaky-bucket-queue'
}
