import type { DescriptorDecision, PolicyDecision, PolicyEvent, PolicyVersions } from '@sluice/core'
import type { Counter, CounterSeries, HistogramSeries, MetricRegistry } from '@sluice/runtime'
import { LabelBook } from './label-book.ts'
import { DURATION_BOUNDS_MS, METRIC, NONE, OTHER } from './metric-names.ts'

/** Allowed with so little left, or less, is near the limit: a fifth. */
const NEAR_SHARE = 5

/** Combinations of resource and dimension that are kept apart; the rest is `other`. */
const MOST_SERIES = 2000

/** Regions come from callers, so they are kept apart only while they look like regions and are few. */
const MOST_REGIONS = 64
const REGION = /^[\w.-]{1,64}$/

const RESULTS = ['allowed', 'denied'] as const
const REASONS = ['allowed', 'exempt', 'unlimited', 'limit', 'never', 'blocked', 'denied', 'unavailable'] as const
const MODES = ['open', 'closed', 'local'] as const

/** The counters of one resource and dimension. */
interface CheckSeries {
  readonly allowed: CounterSeries
  readonly denied: CounterSeries
  readonly denials: CounterSeries
  readonly near: CounterSeries
  readonly labels: { readonly resource: string; readonly dimension: string }
}

interface RegionSeries {
  readonly allowed: CounterSeries
  readonly denied: CounterSeries
}

type ShadowEvent = Extract<PolicyEvent, { readonly type: 'shadow' }>

/** Counts checks of one thread. No label has anything of a caller in it, and all of them are bounded. */
export class CheckMetrics {
  readonly #book: LabelBook<CheckSeries>
  readonly #reasons: ReadonlyMap<PolicyDecision['reason'], CounterSeries>
  readonly #allowed: CounterSeries
  readonly #modes: ReadonlyMap<string, CounterSeries>
  readonly #duration: HistogramSeries
  readonly #errors: CounterSeries
  readonly #shadows: Counter<['dimension', 'resource', 'result', 'scope']>
  readonly #makeRegion: (region: string) => RegionSeries
  readonly #regions = new Map<string, RegionSeries>()
  readonly #noRegion: RegionSeries
  /** The region that was counted last: mostly the next one too. */
  #lastRegion: string | undefined
  #lastRegionSeries: RegionSeries

  constructor(registry: MetricRegistry) {
    this.#book = new LabelBook(checkSeriesIn(registry))
    this.#reasons = reasonsIn(registry)
    this.#allowed = this.#reasons.get('allowed')!
    this.#modes = modesIn(registry)
    this.#duration = registry
      .histogram({
        name: METRIC.checkDuration,
        help: 'How long checks took to decide.',
        bounds: DURATION_BOUNDS_MS,
        alsoAs: { name: 'ratelimit_check_duration_seconds', divisor: 1000 },
      })
      .labels()
    this.#errors = registry
      .counter({ name: 'ratelimit_check_errors_total', help: 'Checks that ended with an error instead of a decision.' })
      .labels()
    this.#shadows = registry.counter({
      name: 'ratelimit_shadow_checks_total',
      help: 'Checks of rules (scope rule) and of rule sets (scope version) that are measured and not enforced.',
      labels: ['dimension', 'resource', 'result', 'scope'],
      mostSeries: MOST_SERIES,
    })
    this.#makeRegion = regionsIn(registry)
    this.#noRegion = this.#makeRegion(NONE)
    this.#lastRegionSeries = this.#noRegion
  }

  /** Takes over the rules that are put in force, whose resources are the labels. */
  use(versions: PolicyVersions): void {
    this.#book.use(versions)
  }

  /** Counts a decision that took so long. `region`: where the request came from. */
  record(decision: PolicyDecision, durationMs: number, region: string | undefined): void {
    const { allowed } = decision
    const series = this.#book.find(decision)
    const regions = region === this.#lastRegion ? this.#lastRegionSeries : this.#regionOf(region)
    if (decision.reason === 'allowed') this.#allowed.inc()
    else this.#reasons.get(decision.reason)?.inc()
    this.#duration.observe(durationMs)
    if (allowed) {
      series.allowed.inc()
      regions.allowed.inc()
      if (decision.remaining * NEAR_SHARE <= decision.limit && decision.limit !== Number.POSITIVE_INFINITY) {
        series.near.inc()
      }
    } else {
      series.denied.inc()
      series.denials.inc()
      regions.denied.inc()
    }
    if (decision.failure !== undefined) this.#modes.get(decision.failure.mode)?.inc()
  }

  /** Counts a decision on descriptors that took so long. Of their limits, the one with the least left says how near it was. */
  recordDescriptors(domain: string, decision: DescriptorDecision, durationMs: number): void {
    const { code, least, failure } = decision
    const series = this.#book.findDomain(domain)
    this.#reasons.get(reasonOf(decision))?.inc()
    this.#duration.observe(durationMs)
    if (code === 'ok') {
      series.allowed.inc()
      this.#noRegion.allowed.inc()
      if (least?.limit !== undefined && least.remaining * NEAR_SHARE <= least.limit.requestsPerUnit) series.near.inc()
    } else {
      series.denied.inc()
      series.denials.inc()
      this.#noRegion.denied.inc()
    }
    if (failure !== undefined) this.#modes.get(failure.mode)?.inc()
  }

  /** Counts a check that ended with an error. */
  recordError(): void {
    this.#errors.inc()
  }

  /** Counts what would have been decided. */
  recordShadow({ rule, dimension, allowed, version }: ShadowEvent): void {
    const { labels } = this.#book.findRule(rule, dimension, version)
    const scope = version === 0 ? 'rule' : 'version'
    this.#shadows.labels({ ...labels, result: allowed ? 'allowed' : 'denied', scope }).inc()
  }

  #regionOf(region: string | undefined): RegionSeries {
    const series = region === undefined ? this.#noRegion : (this.#regions.get(region) ?? this.#addRegion(region))
    this.#lastRegion = region
    this.#lastRegionSeries = series
    return series
  }

  #addRegion(region: string): RegionSeries {
    const label = this.#regions.size < MOST_REGIONS && REGION.test(region) ? region : OTHER
    let series = this.#regions.get(label)
    if (series === undefined) {
      series = this.#makeRegion(label)
      this.#regions.set(label, series)
    }
    return series
  }
}

function reasonOf({ code, least, failure }: DescriptorDecision): PolicyDecision['reason'] {
  if (code === 'over') return failure?.mode === 'closed' ? 'unavailable' : 'limit'
  return least === undefined ? 'unlimited' : 'allowed'
}

function checkSeriesIn(registry: MetricRegistry): (resource: string, dimension: string) => CheckSeries {
  const checks = registry.counter({
    name: METRIC.checks,
    help: 'Checks that were decided, by the dimension that decided and the resource of the most specific rule.',
    labels: ['dimension', 'resource', { name: 'result', values: RESULTS }],
    // Each combination has a series for each result.
    mostSeries: RESULTS.length * MOST_SERIES,
  })
  const labels = ['dimension', 'resource'] as const
  const denials = registry.counter({
    name: 'ratelimit_denials_total',
    help: 'Checks that were refused.',
    labels,
    mostSeries: MOST_SERIES,
  })
  const near = registry.counter({
    name: 'ratelimit_near_limit_total',
    help: 'Checks that were allowed with 20 % of the limit left or less.',
    labels,
    mostSeries: MOST_SERIES,
  })
  return (resource, dimension) => ({
    allowed: checks.labels({ dimension, resource, result: 'allowed' }),
    denied: checks.labels({ dimension, resource, result: 'denied' }),
    denials: denials.labels({ dimension, resource }),
    near: near.labels({ dimension, resource }),
    labels: { dimension, resource },
  })
}

function regionsIn(registry: MetricRegistry): (region: string) => RegionSeries {
  const regions = registry.counter({
    name: METRIC.regions,
    help: 'Checks by the region that the request came from.',
    labels: ['region', { name: 'result', values: RESULTS }],
    mostSeries: RESULTS.length * (MOST_REGIONS + 2),
  })
  return (region) => ({
    allowed: regions.labels({ region, result: 'allowed' }),
    denied: regions.labels({ region, result: 'denied' }),
  })
}

function reasonsIn(registry: MetricRegistry): ReadonlyMap<PolicyDecision['reason'], CounterSeries> {
  const reasons = registry.counter({
    name: 'ratelimit_decisions_total',
    help: 'Decisions by their reason.',
    labels: [{ name: 'reason', values: REASONS }],
  })
  return new Map(REASONS.map((reason) => [reason, reasons.labels({ reason })]))
}

function modesIn(registry: MetricRegistry): ReadonlyMap<string, CounterSeries> {
  const modes = registry.counter({
    name: METRIC.failureModes,
    help: 'Checks that were decided without the store, by failure mode.',
    labels: [{ name: 'mode', values: MODES }],
  })
  return new Map(MODES.map((mode) => [mode, modes.labels({ mode })]))
}
