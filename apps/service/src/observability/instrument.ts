import type { ConfigFollower, ConfigObserver } from '@sluice/config-store'
import type { Clock, Store } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import type {
  DescriptorDecision,
  PolicyDecision,
  PolicyEngine,
  PolicyObserver,
  PolicyRequest,
  PolicyVersions,
} from '@sluice/core/policy'
import type { LeaseEvent, StoreEvent, StoreObserver } from '@sluice/core/store'
import type { Logger, MetricRegistry, MetricsSnapshot } from '@sluice/runtime'
import type { RedisSettings } from '../settings.ts'
import { EventLog } from './event-log.ts'
import { CheckMetrics } from './metrics/check-metrics.ts'
import { ConfigMetrics, watchConfig } from './metrics/config-metrics.ts'
import { EngineMetrics, watchEngine } from './metrics/engine-metrics.ts'
import type { ThreadReadings } from './metrics/process-metrics.ts'
import { watchThread } from './metrics/process-metrics.ts'
import { StoreMetrics, watchStore } from './metrics/store-metrics.ts'
import type { CheckObserver } from './observed-engine.ts'
import type { TopCallersSnapshot } from './top-callers.ts'
import { TopCallers } from './top-callers.ts'

/** Is told what alerts are about. */
export interface CheckSignals {
  recordCheck(denied: boolean): void
  /** `micros`: how long it took; 0 when the store was not asked. */
  recordStoreCall(micros: number, failed: boolean): void
}

/** Is told of decisions, for traces. */
export interface DecisionTracer {
  decided(decision: PolicyDecision, durationMs: number): void
}

/** What an {@link Instrument} works with. */
export interface InstrumentParts {
  readonly metrics: MetricRegistry
  readonly log: Logger
  readonly clock: Clock
  /** Goes into the digests that stand for callers in the log; read at each use. */
  readonly secret: Uint8Array
  /** Default: none. */
  readonly signals?: CheckSignals | undefined
  /** Default: none. */
  readonly tracer?: DecisionTracer | undefined
  /** Region of the node, for metrics. Default: none. */
  readonly region?: string | undefined
  /** Where counters live, for the log; undefined when they live in this process. */
  readonly redis?: Pick<RedisSettings, 'urls' | 'failureMode'> | undefined
}

/** What is looked at whenever metrics are read. */
export interface WatchedParts {
  readonly store: Store
  readonly engine: PolicyEngine
  readonly follower: Pick<ConfigFollower, 'stats'>
  readonly thread: ThreadReadings
}

/** What one thread knows: plain data. */
export interface ThreadReport {
  readonly metrics: MetricsSnapshot
  readonly top: TopCallersSnapshot
}

/**
 * Counts everything that happens in one thread, writes what goes wrong into the log, and says so to whoever watches. It exists
 * before what it observes: its methods are given to store, engine and configuration when they are made.
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
    this.#config.record(event)
    this.#events.config(event)
  }
  readonly #registry: MetricRegistry
  readonly #checks: CheckMetrics
  readonly #store: StoreMetrics
  readonly #engine: EngineMetrics
  readonly #config: ConfigMetrics
  readonly #events: EventLog
  readonly #top: TopCallers
  readonly #signals: CheckSignals | undefined
  readonly #tracer: DecisionTracer | undefined

  constructor({ metrics, log, clock, secret, signals, tracer, region, redis }: InstrumentParts) {
    const nowMs = (): number => clock.nowMicros() / MICROS_PER_MS
    this.#registry = metrics
    this.#checks = new CheckMetrics(metrics, region)
    this.#store = new StoreMetrics(metrics)
    this.#engine = new EngineMetrics(metrics)
    this.#config = new ConfigMetrics(metrics)
    this.#events = new EventLog({ log, nowMs, secret, redis })
    this.#top = new TopCallers(nowMs)
    this.#signals = signals
    this.#tracer = tracer
  }

  /** Looks at these from now on, whenever metrics are read. The function returned ends it. */
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
    if (!decision.allowed) this.#top.refused(request, decision.dimension)
    this.#signals?.recordCheck(!decision.allowed)
    this.#tracer?.decided(decision, durationMs)
  }

  checkedDescriptors(domain: string, decision: DescriptorDecision, durationMs: number): void {
    this.#checks.recordDescriptors(domain, decision, durationMs)
    if (decision.code === 'ok' && decision.least === undefined) {
      this.#checks.recordUnmatched()
      this.#events.unmatchedDescriptors()
    }
    this.#signals?.recordCheck(decision.code === 'over')
  }

  failed(): void {
    this.#checks.recordError()
  }

  /** All that is known now. */
  report(): ThreadReport {
    return { metrics: this.#registry.snapshot(), top: this.#top.snapshot() }
  }

  #observeStore(event: StoreEvent): void {
    this.#store.record(event)
    this.#events.store(event)
    if (event.type === 'asked') this.#signals?.recordStoreCall(event.micros, event.outcome === 'failed')
    // A call that was made has ended with `asked` already.
    else if (event.type === 'failed' && event.charged === 'no' && event.error === undefined) {
      this.#signals?.recordStoreCall(0, true)
    }
  }

  #observeLeases(event: LeaseEvent): void {
    this.#store.recordLease(event)
    this.#events.lease(event)
  }
}

/** Whether a request names nobody: then only rules for all callers together can limit it. */
function isAnonymous({ user, apiKey, tenant, service, ip, descriptors }: PolicyRequest): boolean {
  const isNamed = user || apiKey || tenant || service || ip
  return !isNamed && (descriptors === undefined || Object.keys(descriptors).length === 0)
}
