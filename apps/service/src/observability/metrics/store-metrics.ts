import type { Store } from '@sluice/core'
import type { BreakerState, LeaseEvent, StoreEvent } from '@sluice/core/store'
import type { Counter, CounterSeries, GaugeSeries, HistogramSeries, MetricRegistry } from '@sluice/runtime'
import { DURATION_BOUNDS_MS, METRIC } from './metric-names.ts'

const OUTCOMES = ['answered', 'failed', 'misused'] as const
const CAUSES = ['deadline', 'unreachable', 'refused', 'breaker'] as const
const LEASE_STATES = ['granted', 'spent', 'returned'] as const

const BREAKER_VALUES: Readonly<Record<BreakerState, number>> = { closed: 0, 'half-open': 1, open: 2 }

const MICROS_PER_MS = 1000

/** Whether the store was called and failed. */
export function isStoreError(event: Extract<StoreEvent, { readonly type: 'failed' }>): boolean {
  return event.cause !== 'breaker' && (event.charged === 'unknown' || event.error !== undefined)
}

/** Counts store events of one thread. */
export class StoreMetrics {
  readonly #duration: HistogramSeries
  readonly #calls: Counter<[{ readonly name: 'outcome'; readonly values: typeof OUTCOMES }]>
  readonly #redisErrors: CounterSeries
  readonly #failures: Counter<[{ readonly name: 'cause'; readonly values: typeof CAUSES }]>
  readonly #breaker: GaugeSeries
  readonly #breakerOpened: CounterSeries
  readonly #lateAnswers: CounterSeries
  readonly #givenBack: CounterSeries
  readonly #remembered: CounterSeries
  readonly #leases: LeaseMetrics
  readonly #answered: CounterSeries

  constructor(registry: MetricRegistry) {
    const count = (name: string, help: string): CounterSeries => registry.counter({ name, help }).labels()
    this.#duration = registry
      .histogram({
        name: METRIC.storeDuration,
        help: 'Duration of calls to a remote store.',
        bounds: DURATION_BOUNDS_MS,
        alsoAs: { name: 'ratelimit_store_duration_seconds', divisor: 1000 },
      })
      .labels()
    this.#calls = registry.counter({
      name: 'ratelimit_store_calls_total',
      help: 'Store calls by outcome.',
      labels: [{ name: 'outcome', values: OUTCOMES }],
    })
    for (const outcome of OUTCOMES) this.#calls.labels({ outcome })
    this.#answered = this.#calls.labels({ outcome: 'answered' })
    this.#redisErrors = count(METRIC.redisErrors, 'Calls of Redis that got no usable answer in time.')
    this.#failures = registry.counter({
      name: 'ratelimit_store_failures_total',
      help: 'Failed store calls, including calls skipped because the store is known to be unreachable.',
      labels: [{ name: 'cause', values: CAUSES }],
    })
    for (const cause of CAUSES) this.#failures.labels({ cause })
    this.#breaker = registry
      .gauge({
        name: METRIC.breaker,
        help: 'State of the breaker: 0 closed, 1 half-open, 2 open.',
        merge: 'max',
      })
      .labels()
    this.#breakerOpened = count(
      'ratelimit_breaker_opened_total',
      'Times that asking the store was given up for a pause.',
    )
    this.#lateAnswers = count('ratelimit_late_answers_total', 'Answers of the store that came after their deadline.')
    this.#givenBack = count('ratelimit_late_charges_returned_total', 'Refunded charges of late store replies.')
    this.#remembered = count('ratelimit_remembered_denials_total', 'Denials answered from the deny cache.')
    this.#leases = new LeaseMetrics(registry)
  }

  record(event: StoreEvent): void {
    switch (event.type) {
      case 'asked':
        this.#duration.observe(Math.max(0, event.micros) / MICROS_PER_MS)
        if (event.outcome === 'answered') this.#answered.inc()
        else this.#calls.labels({ outcome: event.outcome }).inc()
        return
      case 'failed':
        this.#failures.labels({ cause: event.cause }).inc()
        if (isStoreError(event)) this.#redisErrors.inc()
        return
      case 'breaker':
        this.#breaker.set(BREAKER_VALUES[event.state])
        if (event.state === 'open') this.#breakerOpened.inc()
        return
      case 'late-answer':
        this.#lateAnswers.inc()
        if (event.givenBack) this.#givenBack.inc()
        return
      case 'remembered':
        this.#remembered.inc()
        return
      default:
      // `fell-back` is counted with its decision.
    }
  }

  recordLease(event: LeaseEvent): void {
    this.#leases.record(event)
  }
}

/** Counts leases. */
class LeaseMetrics {
  readonly #granted: CounterSeries
  readonly #failed: CounterSeries
  readonly #units: Counter<[{ readonly name: 'state'; readonly values: typeof LEASE_STATES }]>

  constructor(registry: MetricRegistry) {
    this.#granted = registry.counter({ name: 'ratelimit_leases_total', help: 'Leases granted to this node.' }).labels()
    this.#failed = registry
      .counter({
        name: 'ratelimit_lease_failures_total',
        help: 'Leases that could not be requested or returned.',
      })
      .labels()
    this.#units = registry.counter({
      name: 'ratelimit_lease_units_total',
      help: 'Units of leases by outcome.',
      labels: [{ name: 'state', values: LEASE_STATES }],
    })
    for (const state of LEASE_STATES) this.#units.labels({ state })
  }

  record(event: LeaseEvent): void {
    switch (event.type) {
      case 'lease-granted':
        this.#granted.inc()
        this.#units.labels({ state: 'granted' }).inc(event.units)
        return
      case 'lease-ended':
        this.#units.labels({ state: 'spent' }).inc(event.spent)
        return
      case 'lease-settled':
        this.#units.labels({ state: 'returned' }).inc(event.units - event.spent)
        return
      case 'lease-failed':
        this.#failed.inc()
        return
    }
  }
}

/** Statistics that stores may have. */
interface KnownStats {
  readonly keys?: number
  readonly evictions?: number
  readonly overflowed?: number
  readonly nodes?: number
  readonly calls?: { readonly pending: number }
  readonly leases?: { readonly leases: number; readonly heldUnits: number } | undefined
}

/**
 * Metrics of a store. The returned function ends it. Keys, evictions and overflows are those of the memory that all
 * threads share, so they are not summed.
 */
export function watchStore(registry: MetricRegistry, store: Store): () => void {
  registry
    .gauge({
      name: METRIC.storeInfo,
      help: 'Location of the counters: local (memory) or remote.',
      labels: [{ name: 'kind', values: ['local', 'remote'] }],
      merge: 'max',
    })
    .labels({ kind: store.mode === 'sync' ? 'local' : 'remote' })
    .set(1)
  const { stats } = store as Store & { readonly stats?: () => KnownStats }
  if (typeof stats !== 'function') return () => undefined
  const read = (): KnownStats => stats.call(store)
  const shown: ((known: KnownStats) => void)[] = []
  const show = (name: string, options: Shown): void => {
    const { help, merge, value } = options
    if (value(read()) === undefined) return
    const gauge = registry.gauge({ name, help, merge }).labels()
    shown.push((known) => gauge.set(value(known) ?? 0))
  }
  show('ratelimit_store_keys', { help: 'Keys held in memory.', merge: 'max', value: ({ keys }) => keys })
  show('ratelimit_store_evictions', {
    help: 'Keys in use that were evicted for new ones, since the start.',
    merge: 'max',
    value: ({ evictions }) => evictions,
  })
  show('ratelimit_store_overflowed', {
    help: 'Decisions and settlements on overflow counters because the table was full, since the start.',
    merge: 'max',
    value: ({ overflowed }) => overflowed,
  })
  show('ratelimit_nodes', { help: 'Nodes that share the store.', merge: 'max', value: ({ nodes }) => nodes })
  show('ratelimit_store_calls_pending', {
    help: 'Store calls in flight.',
    merge: 'sum',
    value: ({ calls }) => calls?.pending,
  })
  show('ratelimit_leases_held', { help: 'Leases held.', merge: 'sum', value: ({ leases }) => leases?.leases })
  show('ratelimit_leased_units_held', {
    help: 'Unspent units of leases.',
    merge: 'sum',
    value: ({ leases }) => leases?.heldUnits,
  })
  return registry.beforeSnapshot(() => {
    const known = read()
    for (const update of shown) update(known)
  })
}

interface Shown {
  readonly help: string
  readonly merge: 'sum' | 'max'
  readonly value: (known: KnownStats) => number | undefined
}
