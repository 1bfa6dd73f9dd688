import type { PolicyVersions, RuleSet } from '@sluice/core/policy'
import type { CounterSeries, MetricRegistry } from '@sluice/runtime'
import { METRIC, NONE, OTHER, RESULTS } from './metric-names.ts'

/** Maximum number of regions with their own series, over the life of the process. */
const MOST_REGIONS = 256

/** The counters of one region. */
interface RegionSeries {
  readonly allowed: CounterSeries
  readonly denied: CounterSeries
}

/**
 * Counts checks by region. Callers choose the region of a request, so only regions of the active rule sets and of the
 * node are labels. All others count as `other`, and each such check as an overflow.
 */
export class RegionCounters {
  readonly #homeRegion: string | undefined
  readonly #make: (region: string) => RegionSeries
  readonly #countOverflow: () => void
  readonly #none: RegionSeries
  readonly #other: RegionSeries
  #known: ReadonlyMap<string, RegionSeries>
  /** The last region, which is often the next one too. */
  #lastRegion: string | undefined
  #last: RegionSeries

  /** `homeRegion`: the region of the node. */
  constructor(registry: MetricRegistry, homeRegion: string | undefined) {
    const regions = registry.counter({
      name: METRIC.regions,
      help: 'Checks by region. Regions that are neither in the rules nor in the setting "region" are other.',
      labels: ['region', { name: 'result', values: RESULTS }],
      mostSeries: RESULTS.length * (MOST_REGIONS + 2),
    })
    this.#homeRegion = homeRegion
    this.#make = (region) => ({
      allowed: regions.labels({ region, result: 'allowed' }),
      denied: regions.labels({ region, result: 'denied' }),
    })
    this.#countOverflow = () => regions.countOverflow()
    this.#none = this.#make(NONE)
    this.#other = this.#make(OTHER)
    this.#last = this.#none
    this.#known = this.#seriesOf([])
  }

  /** Sets the regions of the active rule sets. */
  use({ enforced, candidate }: PolicyVersions): void {
    this.#known = this.#seriesOf([enforced?.ruleSet, candidate?.ruleSet])
    this.#lastRegion = undefined
    this.#last = this.#none
  }

  /** Counts checks. `region`: of the request. */
  count(region: string | undefined, allowed: boolean, amount = 1): void {
    if (region !== this.#lastRegion) {
      this.#last = region === undefined ? this.#none : (this.#known.get(region) ?? this.#other)
      this.#lastRegion = region
    }
    const series = this.#last
    if (allowed) series.allowed.inc(amount)
    else series.denied.inc(amount)
    if (series === this.#other) this.#countOverflow()
  }

  #seriesOf(ruleSets: readonly (RuleSet | undefined)[]): ReadonlyMap<string, RegionSeries> {
    const home = this.#homeRegion === undefined ? [] : [this.#homeRegion]
    const regions = new Set([
      ...home,
      ...ruleSets.flatMap((ruleSet) => (ruleSet === undefined ? [] : regionsOf(ruleSet))),
    ])
    return new Map(Array.from(regions, (region) => [region, this.#make(region)]))
  }
}

function regionsOf({ regions, rules, tiers = [], exemptions = [] }: RuleSet): readonly string[] {
  const all = [...rules, ...[...tiers, ...exemptions].flatMap((part) => part.rules ?? [])]
  return [regions, ...all.map((rule) => rule.regions)].flatMap((factors) => Object.keys(factors ?? {}))
}
