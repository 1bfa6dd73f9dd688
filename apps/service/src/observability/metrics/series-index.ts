import { ruleName } from '@sluice/core/internal'
import type { PolicyDecision, PolicyVersions, RuleSet } from '@sluice/core/policy'
import { NONE, OTHER } from './metric-names.ts'

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
