import type { TrafficPoint, TrafficShare } from '@sluice/contract'
import { bucketQuantile } from '@sluice/runtime'
import { DURATION_BOUNDS_MS, OTHER } from '../metrics/metric-names.ts'
import type { TrafficTotals } from './traffic-totals.ts'

/** So many resources and regions are shown each on their own. */
const MOST_SHARES = 20

const SIGNIFICANT_DIGITS = 4

/** What was counted in a span of time, as clients are told of it. */
export function trafficPoint(
  { checks, regions, withoutStore, storeErrors, storeLatency }: TrafficTotals,
  { at, spanMs }: Pick<TrafficPoint, 'at' | 'spanMs'>,
): TrafficPoint {
  const byResource = sharesOf(checks, ({ resource }) => resource)
  return {
    at,
    spanMs,
    checks: byResource.reduce((sum, share) => sum + share.checks, 0),
    denials: byResource.reduce((sum, share) => sum + share.denials, 0),
    withoutStore,
    storeErrors,
    storeP50Ms: latencyOf(storeLatency, 0.5),
    storeP99Ms: latencyOf(storeLatency, 0.99),
    resources: largest(byResource),
    regions: largest(sharesOf(regions, ({ region }) => region)),
  }
}

function sharesOf<Row extends { readonly result: string; readonly count: number }>(
  rows: readonly Row[],
  nameOf: (row: Row) => string,
): readonly TrafficShare[] {
  const shares = new Map<string, TrafficShare>()
  for (const row of rows) {
    const name = nameOf(row)
    const { checks, denials } = shares.get(name) ?? { checks: 0, denials: 0 }
    const denied = row.result === 'denied' ? row.count : 0
    shares.set(name, { name, checks: checks + row.count, denials: denials + denied })
  }
  return [...shares.values()]
}

/** Those with most checks, and all others as one. */
function largest(shares: readonly TrafficShare[]): readonly TrafficShare[] {
  const sorted = shares.toSorted((one, other) => other.checks - one.checks || (one.name < other.name ? -1 : 1))
  if (sorted.length <= MOST_SHARES) return sorted
  const isShown = (share: TrafficShare, place: number): boolean => place < MOST_SHARES && share.name !== OTHER
  const rest = sorted.filter((share, place) => !isShown(share, place))
  return [
    ...sorted.filter(isShown),
    {
      name: OTHER,
      checks: rest.reduce((sum, share) => sum + share.checks, 0),
      denials: rest.reduce((sum, share) => sum + share.denials, 0),
    },
  ]
}

function latencyOf(counts: readonly number[], quantile: number): number | null {
  // Counted by another version, in other buckets.
  if (counts.length !== DURATION_BOUNDS_MS.length + 1) return null
  const value = bucketQuantile(DURATION_BOUNDS_MS, counts, quantile)
  return value === undefined ? null : Number(value.toPrecision(SIGNIFICANT_DIGITS))
}
