import type { TrafficPoint, TrafficShare } from '@sluice/contract'
import type { MetricFamily, MetricsSnapshot } from '@sluice/runtime'
import { bucketQuantile } from '@sluice/runtime'
import { DURATION_BOUNDS_MS, METRIC, OTHER } from '../metrics/metric-names.ts'

/** Checks of one resource by the dimension that decided, and the result. */
export interface CheckCount {
  readonly resource: string
  readonly dimension: string
  readonly result: string
  readonly count: number
}

/** Checks from one region by the result. */
export interface RegionCount {
  readonly region: string
  readonly result: string
  readonly count: number
}

/** Checks that a version in shadow was measured on, by the rule that decided, and the result. */
export interface ShadowCount {
  readonly version: string
  readonly resource: string
  readonly dimension: string
  readonly result: string
  readonly count: number
}

/** Counts since the start, or in a span of time. Plain data, stored as JSON. */
export interface TrafficTotals {
  readonly checks: readonly CheckCount[]
  readonly regions: readonly RegionCount[]
  readonly shadows: readonly ShadowCount[]
  /** Checks that were decided without the store. */
  readonly withoutStore: number
  readonly storeErrors: number
  /**
   * Store replies by duration: one number per bucket, and one for all above. With counters in memory, decisions by
   * duration.
   */
  readonly storeLatency: readonly number[]
}

export const NO_TRAFFIC: TrafficTotals = {
  checks: [],
  regions: [],
  shadows: [],
  withoutStore: 0,
  storeErrors: 0,
  storeLatency: [],
}

/** Counts since the start, from metrics. */
export function trafficOf({ families }: MetricsSnapshot): TrafficTotals {
  const family = (name: string): MetricFamily | undefined => families.find((one) => one.name === name)
  const info = family(METRIC.storeInfo)
  const isLocal = info?.type === 'gauge' && info.samples.some(({ values }) => values[0] === 'local')
  const latency = family(isLocal ? METRIC.checkDuration : METRIC.storeDuration)
  return {
    checks: rowsOf(family(METRIC.checks), ['dimension', 'resource', 'result']),
    regions: rowsOf(family(METRIC.regions), ['region', 'result']),
    shadows: rowsOf(family(METRIC.shadowVersions), ['version', 'resource', 'dimension', 'result']),
    withoutStore: sumOf(family(METRIC.failureModes)),
    storeErrors: sumOf(family(METRIC.redisErrors)),
    storeLatency: latency?.type === 'histogram' ? (latency.samples[0]?.counts ?? []) : [],
  }
}

/** The increase from `before` to `now`. A counter that is missing or lower was reset: it counts from 0. */
export function trafficSince(now: TrafficTotals, before: TrafficTotals): TrafficTotals {
  return {
    checks: countedSince(now.checks, before.checks),
    regions: countedSince(now.regions, before.regions),
    shadows: countedSince(now.shadows, before.shadows),
    withoutStore: since(now.withoutStore, before.withoutStore),
    storeErrors: since(now.storeErrors, before.storeErrors),
    storeLatency: now.storeLatency.map((count, bucket) => since(count, before.storeLatency[bucket] ?? 0)),
  }
}

/** The sum. Latencies with other buckets cannot be added: those of `other` are dropped then. */
export function addTraffic(one: TrafficTotals, other: TrafficTotals): TrafficTotals {
  return {
    checks: added([...one.checks, ...other.checks]),
    regions: added([...one.regions, ...other.regions]),
    shadows: added([...one.shadows, ...other.shadows]),
    withoutStore: one.withoutStore + other.withoutStore,
    storeErrors: one.storeErrors + other.storeErrors,
    storeLatency: addedLatency(one.storeLatency, other.storeLatency),
  }
}

/** Whether anything was counted. */
export function hasTraffic({ checks, withoutStore, storeErrors }: TrafficTotals): boolean {
  return checks.some(({ count }) => count > 0) || withoutStore > 0 || storeErrors > 0
}

/** At most `most` rows of checks and of regions; the smallest are merged as `other`. */
export function boundedTraffic(totals: TrafficTotals, most: number): TrafficTotals {
  return {
    ...totals,
    checks: bounded(totals.checks, most, { resource: OTHER, dimension: OTHER }),
    regions: bounded(totals.regions, most, { region: OTHER }),
    shadows: bounded(totals.shadows, most, { version: OTHER, resource: OTHER, dimension: OTHER }),
  }
}

/** Fields of all rows, and of some. */
interface Counted {
  readonly resource?: string
  readonly dimension?: string
  readonly region?: string
  readonly version?: string
  readonly result: string
  readonly count: number
}

function rowsOf<Row extends Counted>(
  family: MetricFamily | undefined,
  names: readonly Exclude<keyof Row, 'count'>[],
): readonly Row[] {
  if (family?.type !== 'counter') return []
  const places = names.map((name) => [name, family.labels.indexOf(String(name))] as const)
  return family.samples.map(({ values, value }) => {
    const labels = Object.fromEntries(places.map(([name, place]) => [name, values[place] ?? OTHER]))
    return { ...labels, count: value } as unknown as Row
  })
}

function sumOf(family: MetricFamily | undefined): number {
  if (family === undefined || family.type === 'histogram') return 0
  return family.samples.reduce((sum, { value }) => sum + value, 0)
}

function since(now: number, before: number): number {
  return now >= before ? now - before : now
}

function countedSince<Row extends Counted>(now: readonly Row[], before: readonly Row[]): readonly Row[] {
  const known = new Map(before.map((row) => [keyOf(row), row.count]))
  return now
    .map((row) => ({ ...row, count: since(row.count, known.get(keyOf(row)) ?? 0) }))
    .filter(({ count }) => count > 0)
}

function added<Row extends Counted>(rows: readonly Row[]): readonly Row[] {
  const sums = new Map<string, Row>()
  for (const row of rows) {
    const key = keyOf(row)
    const sum = sums.get(key)
    sums.set(key, sum === undefined ? row : { ...sum, count: sum.count + row.count })
  }
  return [...sums.values()]
}

function bounded<Row extends Counted>(
  rows: readonly Row[],
  most: number,
  rest: Omit<Row, 'result' | 'count'>,
): readonly Row[] {
  if (rows.length <= most) return rows
  const sorted = rows.toSorted((one, other) => other.count - one.count)
  return added([...sorted.slice(0, most), ...sorted.slice(most).map((row) => ({ ...row, ...rest }))])
}

function keyOf({ resource, dimension, region, version, result }: Counted): string {
  return JSON.stringify([resource, dimension, region, version, result])
}

function addedLatency(one: readonly number[], other: readonly number[]): readonly number[] {
  if (one.length === 0) return other
  if (other.length !== one.length) return one
  return one.map((count, bucket) => count + (other[bucket] ?? 0))
}

/** The resources and the regions of a response. */
const MOST_CHECKS: LargestOptions = { most: 20, by: 'checks' }

const SIGNIFICANT_DIGITS = 4

/** Counts of a span of time for a response. */
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
    resources: largestShares(byResource, MOST_CHECKS),
    regions: largestShares(
      sharesOf(regions, ({ region }) => region),
      MOST_CHECKS,
    ),
  }
}

/** Checks and denials by name. */
export function sharesOf<Row extends { readonly result: string; readonly count: number }>(
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

/** How the largest shares are chosen. */
export interface LargestOptions {
  /** Maximum number besides `other`. */
  readonly most: number
  /** What counts first; the other of the two decides between equals. */
  readonly by: 'checks' | 'denials'
}

/** The largest rows, and all others as one. */
export function largestShares(shares: readonly TrafficShare[], { most, by }: LargestOptions): readonly TrafficShare[] {
  const second = by === 'checks' ? 'denials' : 'checks'
  const sorted = shares.toSorted(
    (one, other) => other[by] - one[by] || other[second] - one[second] || (one.name < other.name ? -1 : 1),
  )
  if (sorted.length <= most) return sorted
  const isShown = (share: TrafficShare, place: number): boolean => place < most && share.name !== OTHER
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

/** A quantile of durations in milliseconds; null when there were none. */
export function latencyOf(counts: readonly number[], quantile: number): number | null {
  // Written by another version with other buckets.
  if (counts.length !== DURATION_BOUNDS_MS.length + 1) return null
  const value = bucketQuantile(DURATION_BOUNDS_MS, counts, quantile)
  return value === undefined ? null : Number(value.toPrecision(SIGNIFICANT_DIGITS))
}
