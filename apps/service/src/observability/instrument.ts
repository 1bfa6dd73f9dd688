import type { ConfigFollower, ConfigObserver } from '@sluice/config-store'
import type { Clock, Store } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type {
  DescriptorDecision,
  DescriptorOptions,
  DescriptorRequest,
  PolicyDecision,
  PolicyEngineOptions,
  PolicyObserver,
  PolicyRequest,
  PolicyReservation,
  PolicyReserveOptions,
  PolicyVersions,
} from '@sluice/core/policy'
import { PolicyEngine } from '@sluice/core/policy'
import type { Answer, LeaseEvent, Mode, StoreEvent, StoreObserver } from '@sluice/core/store'
import type { CounterSeries, Logger, MetricRegistry, MetricsSnapshot } from '@sluice/runtime'
import type { RedisSettings } from '../settings/settings.ts'
import type { DecisionSample } from './decision-sample.ts'
import { EventLog } from './event-log.ts'
import type { ThrottleCounts } from './metrics/check-metrics.ts'
import { CheckMetrics } from './metrics/check-metrics.ts'
import { configChangesIn, watchConfig } from './metrics/config-metrics.ts'
import { EngineMetrics, watchEngine } from './metrics/engine-metrics.ts'
import type { ThreadReadings } from './metrics/process-metrics.ts'
import { watchThread } from './metrics/process-metrics.ts'
import { StoreMetrics, watchStore } from './metrics/store-metrics.ts'
import type { TopCallersSnapshot } from './top-callers.ts'
import { TopCallers } from './top-callers.ts'

/** Records what alerts are about. */
export interface CheckSignals {
  /** `amount`: number of checks. Default: 1. */
  recordCheck(denied: boolean, amount?: number): void
  /** `micros`: duration; 0 for a skipped call. */
  recordStoreCall(micros: number, failed: boolean): void
}

/** Records decisions for traces. */
export interface DecisionTracer {
  decided(decision: PolicyDecision, durationMs: number): void
}

/** Options of {@link Instrument}. */
export interface InstrumentParts {
  readonly metrics: MetricRegistry
  readonly log: Logger
  readonly clock: Clock
  /** Key of the digests that replace callers in the log; read at each use. */
  readonly secret: Uint8Array
  /** Default: none. */
  readonly signals?: CheckSignals | undefined
  /** Default: none. */
  readonly tracer?: DecisionTracer | undefined
  /** Region of the node, for metrics. Default: none. */
  readonly region?: string | undefined
  /** Keeps a sample of decisions. Default: none. */
  readonly decisions?: Pick<DecisionSample, 'record'> | undefined
  /** For the log; undefined if counters are in memory. */
  readonly redis?: Pick<RedisSettings, 'urls' | 'failureMode'> | undefined
}

/** What metrics read when they are scraped. */
export interface WatchedParts {
  readonly store: Store
  readonly engine: PolicyEngine
  readonly follower: Pick<ConfigFollower, 'stats'>
  readonly thread: ThreadReadings
}

/** Metrics and top callers of one thread: plain data. */
export interface ThreadReport {
  readonly metrics: MetricsSnapshot
  readonly top: TopCallersSnapshot
}

/**
 * Metrics, log and traces of one thread. It is created before what it observes: store, engine and configuration get its
 * methods when they are created.
 */
export class Instrument implements CheckObserver {
  readonly observeStore: StoreObserver = (event) => this.#observeStore(event)
  readonly observeLeases = (event: LeaseEvent): void => this.#observeLeases(event)
  readonly observePolicy: PolicyObserver = (event) => {
    if (event.type === 'shadow') this.#checks.recordShadow(event)
    else if (event.type === 'unmatched') {
      this.#checks.recordUnmatched()
      this.#events.policy(event)
    } else {
      this.#engine.record(event)
      this.#events.policy(event)
    }
  }
  readonly observeConfig: ConfigObserver = (event) => {
    if (event.type === 'refreshed') this.#configChanges.inc()
    this.#events.config(event)
  }
  readonly #registry: MetricRegistry
  readonly #checks: CheckMetrics
  readonly #store: StoreMetrics
  readonly #engine: EngineMetrics
  readonly #configChanges: CounterSeries
  readonly #events: EventLog
  readonly #top: TopCallers
  readonly #signals: CheckSignals | undefined
  readonly #tracer: DecisionTracer | undefined
  readonly #decisions: InstrumentParts['decisions']

  constructor({ metrics, log, clock, secret, signals, tracer, region, decisions, redis }: InstrumentParts) {
    const nowMs = (): number => clock.nowMicros() / MICROS_PER_MS
    this.#registry = metrics
    this.#checks = new CheckMetrics(metrics, region)
    this.#store = new StoreMetrics(metrics)
    this.#engine = new EngineMetrics(metrics)
    this.#configChanges = configChangesIn(metrics)
    this.#events = new EventLog({ log, nowMs, secret, redis })
    this.#top = new TopCallers(nowMs)
    this.#signals = signals
    this.#tracer = tracer
    this.#decisions = decisions
  }

  /** Reads these whenever metrics are read. The returned function ends it. */
  watch({ store, engine, follower, thread }: WatchedParts): () => void {
    const ends = [
      watchStore(this.#registry, store),
      watchEngine(this.#registry, engine),
      watchConfig(this.#registry, follower),
      watchThread(this.#registry, thread),
    ]
    return () => {
      for (const end of ends) end()
    }
  }

  used(versions: PolicyVersions): void {
    this.#checks.use(versions)
    this.#events.rulesChanged()
  }

  checked(request: PolicyRequest, decision: PolicyDecision, durationMs: number): void {
    this.#checks.record(decision, durationMs, request.region)
    if (isAnonymous(request)) {
      this.#checks.recordAnonymous()
      this.#events.anonymous()
    }
    if (!decision.allowed) this.#top.denied(request, decision.dimension)
    this.#signals?.recordCheck(!decision.allowed)
    this.#tracer?.decided(decision, durationMs)
    this.#decisions?.record(request, decision, durationMs)
  }

  checkedDescriptors(domain: string, decision: DescriptorDecision, durationMs: number): void {
    this.#checks.recordDescriptors(domain, decision, durationMs)
    if (isUnmatched(decision)) {
      this.#checks.recordUnmatched()
      this.#events.unmatchedDescriptors(decision.statuses[0]!.matched === 'unknown-domain')
    }
    this.#signals?.recordCheck(decision.code === 'over')
  }

  throttled(counts: ThrottleCounts): void {
    const { allowed, limit, never, unavailable } = counts
    const denied = limit + never + unavailable
    this.#checks.recordThrottled(counts)
    if (allowed > 0) this.#signals?.recordCheck(false, allowed)
    if (denied > 0) this.#signals?.recordCheck(true, denied)
  }

  failed(): void {
    this.#checks.recordError()
  }

  report(): ThreadReport {
    return { metrics: this.#registry.snapshot(), top: this.#top.snapshot() }
  }

  #observeStore(event: StoreEvent): void {
    this.#store.record(event)
    this.#events.store(event)
    if (event.type === 'asked') this.#signals?.recordStoreCall(event.micros, event.outcome === 'failed')
    // Only a call that the breaker skipped: all others are counted by `asked`, whether or not they were sent.
    else if (event.type === 'failed' && event.cause === 'breaker' && event.error === undefined) {
      this.#signals?.recordStoreCall(0, true)
    }
  }

  #observeLeases(event: LeaseEvent): void {
    this.#store.recordLease(event)
    this.#events.lease(event)
  }
}

/** Whether no limit was found for any descriptor, nor a rule that they are not limited. */
function isUnmatched({ statuses }: DescriptorDecision): boolean {
  return statuses.every(({ matched }) => matched === 'none' || matched === 'unknown-domain')
}

/** Whether a request names no caller. Then only global rules can limit it. */
function isAnonymous({ user, apiKey, tenant, service, ip, descriptors }: PolicyRequest): boolean {
  const isNamed = user || apiKey || tenant || service || ip
  return !isNamed && (descriptors === undefined || Object.keys(descriptors).length === 0)
}

/** Observes the decisions of an {@link ObservedEngine}. */
export interface CheckObserver {
  /** The rules have changed. */
  used(versions: PolicyVersions): void
  /** A request was decided, and charged if allowed. */
  checked(request: PolicyRequest, decision: PolicyDecision, durationMs: number): void
  checkedDescriptors(domain: string, decision: DescriptorDecision, durationMs: number): void
  /** A request could not be decided. */
  failed(): void
}

/** Options of {@link ObservedEngine}. */
export interface ObservationOptions {
  readonly observer: CheckObserver
  /** Monotonic milliseconds, with fractions. */
  readonly monotonicMs: () => number
}

/**
 * A policy engine that reports every decision that charges: `check`, `reserve` and `decideDescriptors`, for all
 * listeners. `peek`, `explain` and `usage` charge nothing and are not reported. Errors of the observer are ignored.
 */
export class ObservedEngine<M extends Mode = Mode> extends PolicyEngine<M> {
  readonly #observer: CheckObserver
  readonly #monotonicMs: () => number

  constructor({ ruleSet, ...options }: PolicyEngineOptions<M>, { observer, monotonicMs }: ObservationOptions) {
    super(options)
    this.#observer = observer
    this.#monotonicMs = monotonicMs
    if (ruleSet !== undefined) this.use({ enforced: { number: 0, ruleSet } })
  }

  override use(versions: PolicyVersions): void {
    super.use(versions)
    this.#observer.used(versions)
  }

  override check(request: PolicyRequest): Answer<M, PolicyDecision> {
    const startedMs = this.#monotonicMs()
    let answer: Answer<M, PolicyDecision>
    try {
      answer = super.check(request)
    } catch (error) {
      throw this.#failed(error)
    }
    if (answer instanceof Promise) return this.#observed(answer, { startedMs, subject: request, tell: tellCheck })
    // The way of a check in memory, without an object that says how to report it.
    try {
      this.#observer.checked(request, answer as PolicyDecision, Math.max(0, this.#monotonicMs() - startedMs))
    } catch {
      // A check must not fail because of its observer.
    }
    return answer
  }

  override reserve(
    request: PolicyRequest,
    options?: PolicyReserveOptions,
  ): Answer<M, PolicyReservation<M> | PolicyDecision> {
    const startedMs = this.#monotonicMs()
    try {
      return this.#observed(super.reserve(request, options), { startedMs, subject: request, tell: tellReservation })
    } catch (error) {
      throw this.#failed(error)
    }
  }

  override decideDescriptors(request: DescriptorRequest, options?: DescriptorOptions): Answer<M, DescriptorDecision> {
    const startedMs = this.#monotonicMs()
    try {
      const answer = super.decideDescriptors(request, options)
      return this.#observed(answer, { startedMs, subject: request.domain, tell: tellDescriptors })
    } catch (error) {
      throw this.#failed(error)
    }
  }

  /** Reports a decision, once there is one. */
  #observed<T, S>(answer: Answer<M, T>, observation: Observation<T, S>): Answer<M, T> {
    if (!(answer instanceof Promise)) {
      this.#tell(answer as T, observation)
      return answer
    }
    const told = answer.then(
      (decided: T) => {
        this.#tell(decided, observation)
        return decided
      },
      (error: unknown) => {
        throw this.#failed(error)
      },
    )
    return told as Answer<M, T>
  }

  #tell<T, S>(decided: T, { startedMs, subject, tell }: Observation<T, S>): void {
    try {
      tell(this.#observer, subject, { decided, durationMs: Math.max(0, this.#monotonicMs() - startedMs) })
    } catch {
      // A check must not fail because of its observer.
    }
  }

  #failed(error: unknown): unknown {
    try {
      this.#observer.failed()
    } catch {
      // As above.
    }
    return error
  }
}

/** How one decision is reported. Without closures: this runs for every check. */
interface Observation<T, S> {
  readonly startedMs: number
  /** What was asked. */
  readonly subject: S
  readonly tell: (observer: CheckObserver, subject: S, outcome: Outcome<T>) => void
}

interface Outcome<T> {
  readonly decided: T
  readonly durationMs: number
}

function tellCheck(
  observer: CheckObserver,
  request: PolicyRequest,
  { decided, durationMs }: Outcome<PolicyDecision>,
): void {
  observer.checked(request, decided, durationMs)
}

function tellReservation(
  observer: CheckObserver,
  request: PolicyRequest,
  { decided, durationMs }: Outcome<PolicyReservation | PolicyDecision>,
): void {
  observer.checked(request, 'claim' in decided ? decided.decision : decided, durationMs)
}

function tellDescriptors(
  observer: CheckObserver,
  domain: string,
  { decided, durationMs }: Outcome<DescriptorDecision>,
): void {
  observer.checkedDescriptors(domain, decided, durationMs)
}
