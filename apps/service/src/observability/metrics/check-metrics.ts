import type { FailureMode } from '@sluice/core'
import { ruleName } from '@sluice/core/internal'
import type { DescriptorDecision, PolicyDecision, PolicyEvent, PolicyVersions, RuleSet } from '@sluice/core/policy'
import type { Counter, CounterSeries, HistogramSeries, MetricRegistry } from '@sluice/runtime'
import { DURATION_BOUNDS_MS, METRIC, NONE, OTHER, RESULTS } from './metric-names.ts'
import { RegionCounters } from './region-counters.ts'

/** Maximum number of combinations of resource and dimension; the rest is `other`. */
const MOST_SERIES = 2000

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

/** The labels of limits that callers name with their numbers. */
const AD_HOC = { dimension: 'key', resource: 'CL.THROTTLE' } as const

/**
 * Numbers of decisions on limits that callers name: allowed, those of them near the limit, denied by reason, and by
 * failure mode.
 */
export type ThrottleCounts = Readonly<
  Record<'allowed' | 'near' | 'limit' | 'never' | 'unavailable' | FailureMode, number>
>

/** An allowed check with at most this share of the limit remaining is near the limit. */
const NEAR_SHARE = 5

/** Whether an allowed check was near its limit. */
export function isNear(remaining: number | null, limit: number): boolean {
  return remaining !== null && remaining * NEAR_SHARE <= limit && limit !== Number.POSITIVE_INFINITY
}

type ShadowEvent = Extract<PolicyEvent, { readonly type: 'shadow' }>

/** Counts the checks of one thread. Labels are bounded and never contain callers. */
export class CheckMetrics {
  readonly #make: (resource: string, dimension: string) => CheckSeries
  /** Made when the first comes: most services have none. */
  #throttled: CheckSeries | undefined
  readonly #index: SeriesIndex<CheckSeries>
  readonly #reasons: ReadonlyMap<PolicyDecision['reason'], CounterSeries>
  readonly #allowed: CounterSeries
  readonly #modes: ReadonlyMap<string, CounterSeries>
  readonly #duration: HistogramSeries
  readonly #errors: CounterSeries
  readonly #unmatched: CounterSeries
  readonly #anonymous: CounterSeries
  readonly #shadows: Counter<['dimension', 'resource', 'result', 'scope']>
  readonly #shadowVersions: Counter<['dimension', 'resource', 'result', 'version']>
  readonly #regions: RegionCounters

  /** `homeRegion`: the region of the node. */
  constructor(registry: MetricRegistry, homeRegion: string | undefined) {
    this.#make = checkSeriesIn(registry)
    this.#index = new SeriesIndex(this.#make)
    this.#reasons = reasonsIn(registry)
    this.#allowed = this.#reasons.get('allowed')!
    this.#modes = modesIn(registry)
    this.#duration = registry
      .histogram({
        name: METRIC.checkDuration,
        help: 'Duration of decisions.',
        bounds: DURATION_BOUNDS_MS,
        alsoAs: { name: 'ratelimit_check_duration_seconds', divisor: 1000 },
      })
      .labels()
    this.#errors = registry
      .counter({ name: 'ratelimit_check_errors_total', help: 'Checks that ended with an error instead of a decision.' })
      .labels()
    this.#unmatched = registry
      .counter({
        name: 'ratelimit_unmatched_checks_total',
        help: 'Checks that no enforced rule matched, by resource and by the identities of the request.',
      })
      .labels()
    this.#anonymous = registry
      .counter({
        name: 'ratelimit_anonymous_checks_total',
        help: 'Checks that name no caller: no user, API key, tenant, service, address or descriptor.',
      })
      .labels()
    this.#shadows = registry.counter({
      name: 'ratelimit_shadow_checks_total',
      help: 'Checks of shadow rules (scope rule) and shadow rule sets (scope version).',
      labels: ['dimension', 'resource', 'result', 'scope'],
      mostSeries: MOST_SERIES,
    })
    this.#shadowVersions = registry.counter({
      name: METRIC.shadowVersions,
      help: 'Checks of shadow rule sets by version.',
      labels: ['dimension', 'resource', 'result', 'version'],
      mostSeries: MOST_SERIES,
    })
    this.#regions = new RegionCounters(registry, homeRegion)
  }

  /** Sets the active rules; their resources become labels. */
  use(versions: PolicyVersions): void {
    this.#index.use(versions)
    this.#regions.use(versions)
  }

  /** Counts a decision and its duration. `region`: of the request. */
  record(decision: PolicyDecision, durationMs: number, region: string | undefined): void {
    const { allowed } = decision
    const series = this.#index.find(decision)
    this.#regions.count(region, allowed)
    if (decision.reason === 'allowed') this.#allowed.inc()
    else this.#reasons.get(decision.reason)?.inc()
    this.#duration.observe(durationMs)
    if (allowed) {
      series.allowed.inc()
      if (isNear(decision.remaining, decision.limit)) series.near.inc()
    } else {
      series.denied.inc()
      series.denials.inc()
    }
    if (decision.failure !== undefined) this.#modes.get(decision.failure.mode)?.inc()
  }

  /**
   * Counts a decision on descriptors and its duration. The limit with the least remaining decides whether it was near.
   */
  recordDescriptors(domain: string, decision: DescriptorDecision, durationMs: number): void {
    const { code, least, failure } = decision
    const series = this.#index.findDomain(domain)
    this.#regions.count(undefined, code === 'ok')
    this.#reasons.get(reasonOf(decision))?.inc()
    this.#duration.observe(durationMs)
    if (code === 'ok') {
      series.allowed.inc()
      if (least?.limit !== undefined && isNear(least.remaining, least.limit.requestsPerUnit)) series.near.inc()
    } else {
      series.denied.inc()
      series.denials.inc()
    }
    if (failure !== undefined) this.#modes.get(failure.mode)?.inc()
  }

  /** Counts decisions on limits that callers named with their numbers. All have one resource. */
  recordThrottled(counts: ThrottleCounts): void {
    const { allowed, near, limit, never, unavailable } = counts
    const denied = limit + never + unavailable
    this.#throttled ??= this.#make(AD_HOC.resource, AD_HOC.dimension)
    this.#throttled.allowed.inc(allowed)
    this.#throttled.near.inc(near)
    this.#throttled.denied.inc(denied)
    this.#throttled.denials.inc(denied)
    this.#regions.count(undefined, true, allowed)
    this.#regions.count(undefined, false, denied)
    this.#allowed.inc(allowed)
    for (const reason of ['limit', 'never', 'unavailable'] as const) this.#reasons.get(reason)?.inc(counts[reason])
    for (const mode of MODES) this.#modes.get(mode)?.inc(counts[mode])
  }

  /** Counts a check that no enforced rule matched. */
  recordUnmatched(): void {
    this.#unmatched.inc()
  }

  /** Counts a check that names no caller. */
  recordAnonymous(): void {
    this.#anonymous.inc()
  }

  /** Counts a check that ended with an error. */
  recordError(): void {
    this.#errors.inc()
  }

  /** Counts a shadow decision. */
  recordShadow({ rule, dimension, allowed, version }: ShadowEvent): void {
    const { labels } = this.#index.findRule(rule, dimension, version)
    const result = allowed ? 'allowed' : 'denied'
    this.#shadows.labels({ ...labels, result, scope: version === 0 ? 'rule' : 'version' }).inc()
    if (version !== 0) this.#shadowVersions.labels({ ...labels, result, version: String(version) }).inc()
  }
}

function reasonOf({ code, least, failure }: DescriptorDecision): PolicyDecision['reason'] {
  if (code === 'over') return failure?.mode === 'closed' ? 'unavailable' : 'limit'
  return least === undefined ? 'unlimited' : 'allowed'
}

function checkSeriesIn(registry: MetricRegistry): (resource: string, dimension: string) => CheckSeries {
  const checks = registry.counter({
    name: METRIC.checks,
    help: 'Decided checks by deciding dimension and resource of the most specific rule.',
    labels: ['dimension', 'resource', { name: 'result', values: RESULTS }],
    // One series per result.
    mostSeries: RESULTS.length * MOST_SERIES,
  })
  const labels = ['dimension', 'resource'] as const
  const denials = registry.counter({
    name: 'ratelimit_denials_total',
    help: 'Denied checks.',
    labels,
    mostSeries: MOST_SERIES,
  })
  const near = registry.counter({
    name: 'ratelimit_near_limit_total',
    help: 'Allowed checks with at most 20 % of the limit remaining.',
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

function reasonsIn(registry: MetricRegistry): ReadonlyMap<PolicyDecision['reason'], CounterSeries> {
  const reasons = registry.counter({
    name: 'ratelimit_decisions_total',
    help: 'Decisions by reason.',
    labels: [{ name: 'reason', values: REASONS }],
  })
  return new Map(REASONS.map((reason) => [reason, reasons.labels({ reason })]))
}

function modesIn(registry: MetricRegistry): ReadonlyMap<string, CounterSeries> {
  const modes = registry.counter({
    name: METRIC.failureModes,
    help: 'Checks decided without the store, by failure mode.',
    labels: [{ name: 'mode', values: MODES }],
  })
  return new Map(MODES.map((mode) => [mode, modes.labels({ mode })]))
}

/** The series of one resource by deciding dimension. */
export class ResourceSeries<Series> {
  readonly resource: string
  /** Lower for a more specific resource. */
  readonly rank: number
  readonly #make: MakeSeries<Series>
  readonly #byDimension = new Map<string, Series>()
  /** The last dimension, which is often the next one too. */
  #lastDimension: string | undefined
  #last: Series | undefined

  constructor({ resource, rank }: Pick<ResourceSeries<Series>, 'resource' | 'rank'>, make: MakeSeries<Series>) {
    this.resource = resource
    this.rank = rank
    this.#make = make
  }

  of(dimension: string): Series {
    if (dimension === this.#lastDimension) return this.#last as Series
    // Rules use few dimensions, but blocks may use any.
    const isKept = this.#byDimension.has(dimension) || this.#byDimension.size < MOST_DIMENSIONS
    const series = this.#add(isKept ? dimension : OTHER)
    this.#lastDimension = dimension
    this.#last = series
    return series
  }

  #add(dimension: string): Series {
    const known = this.#byDimension.get(dimension)
    if (known !== undefined) return known
    const series = this.#make(this.resource, dimension === '' ? NONE : dimension)
    this.#byDimension.set(dimension, series)
    return series
  }
}

/** Creates the series of two labels. */
export type MakeSeries<Series> = (resource: string, dimension: string) => Series

const MOST_DIMENSIONS = 64

/** Number of rule sets kept for decisions in flight. */
const MOST_VERSIONS = 4

/**
 * Finds the series of a decision. The resource label is the pattern of the most specific rule that applied to the
 * request, whichever rule decided, so that the share of denials by resource is correct. Patterns come from rules, never
 * from requests, so their number is bounded. Requests without a rule are `other`.
 */
export class SeriesIndex<Series> {
  readonly #make: MakeSeries<Series>
  readonly #unknown: ResourceSeries<Series>
  readonly #tables = new Map<number, LabelTable<Series>>()
  /** The last table used. */
  #current: LabelTable<Series>
  #enforced: LabelTable<Series>

  constructor(make: MakeSeries<Series>) {
    this.#make = make
    this.#unknown = new ResourceSeries({ resource: OTHER, rank: Number.MAX_SAFE_INTEGER }, make)
    this.#current = new LabelTable(0, { rules: [] }, make)
    this.#enforced = this.#current
  }

  /** Sets the active rules. */
  use({ enforced, candidate }: PolicyVersions): void {
    this.#enforced = this.#add(enforced?.number ?? 0, enforced?.ruleSet ?? { rules: [] })
    if (candidate !== undefined) this.#add(candidate.number, candidate.ruleSet)
    for (const number of this.#tables.keys()) {
      if (this.#tables.size <= MOST_VERSIONS) break
      this.#tables.delete(number)
    }
    this.#current = this.#enforced
  }

  /** The series of a decision. */
  find(decision: PolicyDecision): Series {
    return this.#placeOf(decision).of(decision.dimension)
  }

  /** The series of a rule by name; `version` 0: the enforced rules. */
  findRule(rule: string, dimension: string, version: number): Series {
    const table = version === 0 ? this.#enforced : this.#tableOf(version)
    return (table.rules.get(rule) ?? this.#unknown).of(dimension)
  }

  /** The series of a domain of descriptors. */
  findDomain(domain: string): Series {
    return (this.#enforced.domains.get(domain) ?? this.#unknown).of('descriptor')
  }

  #placeOf({ version, limits, reason, rule }: PolicyDecision): ResourceSeries<Series> {
    const table = this.#tableOf(version)
    if (limits.length === 0) return table.placeOfRuling(reason, rule) ?? this.#unknown
    let last = limits[0]!.rule
    let best = table.rules.get(last)
    for (let index = 1; index < limits.length; index++) {
      const name = limits[index]!.rule
      // A rule has one report per window.
      if (name === last) continue
      last = name
      const place = table.rules.get(name)
      if (place !== undefined && (best === undefined || place.rank < best.rank)) best = place
    }
    return best ?? this.#unknown
  }

  #tableOf(version: number): LabelTable<Series> {
    if (this.#current.version !== version) this.#current = this.#tables.get(version) ?? this.#enforced
    return this.#current
  }

  #add(version: number, ruleSet: RuleSet): LabelTable<Series> {
    const table = new LabelTable(version, ruleSet, this.#make)
    // Newest last: the oldest is dropped first.
    this.#tables.delete(version)
    this.#tables.set(version, table)
    return table
  }
}

/** The resources of one rule set, by the names that decisions have. */
class LabelTable<Series> {
  readonly version: number
  readonly rules: ReadonlyMap<string, ResourceSeries<Series>>
  readonly domains: ReadonlyMap<string, ResourceSeries<Series>>
  readonly #exemptions: ReadonlyMap<string, ResourceSeries<Series>>
  readonly #denials: ReadonlyMap<string, ResourceSeries<Series>>

  constructor(version: number, ruleSet: RuleSet, make: MakeSeries<Series>) {
    const { rules, tiers = [], exemptions = [], denyList = [], domains = [] } = ruleSet
    const ofPart = (part: 'tier' | 'exemption', entries: readonly Pick<Part, 'name' | 'rules'>[]): [string, string][] =>
      entries.flatMap(({ name, rules: own = [] }) =>
        own.map((rule): [string, string] => [ruleName(rule, { part, name }), rule.resource]),
      )
    const named: readonly [string, string][] = [
      ...rules.map((rule): [string, string] => [ruleName(rule), rule.resource]),
      ...ofPart('tier', tiers),
      ...ofPart('exemption', exemptions),
    ]
    const exempted = exemptions.map(({ name, match }): [string, string] => [name, match.resource ?? '*'])
    const denied = denyList.map(({ name, match }): [string, string] => [name, match.resource ?? '*'])
    const places = placesOf([...named, ...exempted, ...denied], make)
    const table = (entries: readonly [string, string][]): ReadonlyMap<string, ResourceSeries<Series>> =>
      new Map(entries.map(([name, resource]) => [name, places.get(resource)!]))
    this.version = version
    this.rules = table(named)
    this.#exemptions = table(exempted)
    this.#denials = table(denied)
    this.domains = new Map(
      domains.map(({ domain }) => [domain, new ResourceSeries({ resource: domain, rank: 0 }, make)]),
    )
  }

  /** The series of a decision without limits; undefined if no rule applies. */
  placeOfRuling(reason: PolicyDecision['reason'], name: string): ResourceSeries<Series> | undefined {
    switch (reason) {
      case 'exempt':
        return this.#exemptions.get(name)
      case 'denied':
        return this.#denials.get(name)
      default:
        return this.rules.get(name)
    }
  }
}

type Part = NonNullable<RuleSet['exemptions']>[number]

function placesOf<Series>(
  named: readonly [string, string][],
  make: MakeSeries<Series>,
): ReadonlyMap<string, ResourceSeries<Series>> {
  const resources = [...new Set(named.map(([, resource]) => resource))]
  const shapes = [...new Set(resources.map(shapeOf))].sort()
  const ranks = new Map(shapes.map((shape, rank) => [shape, rank]))
  return new Map(
    resources.map((resource) => [
      resource,
      new ResourceSeries({ resource, rank: ranks.get(shapeOf(resource))! }, make),
    ]),
  )
}

/** Sort key that puts the more specific of two matching patterns first: literals, any one segment, all below. */
function shapeOf(resource: string): string {
  if (resource === '*') return 'z'
  const segments = resource.split('/').filter((segment) => segment !== '')
  const hasRest = segments.at(-1) === '*'
  const fixed = hasRest ? segments.slice(0, -1) : segments
  const kinds = fixed.map((segment) => (segment === '*' || segment.startsWith(':') ? 'b' : 'a'))
  return `${kinds.join('')}${hasRest ? 'd' : 'c'}`
}
