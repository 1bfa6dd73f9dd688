import { invalidOption } from '../option-range.ts'
import type {
  GaugeMerge,
  HistogramFamily,
  HistogramSample,
  MetricFamily,
  MetricsSnapshot,
  NumberSample,
} from './metrics-snapshot.ts'

const MERGE_NUMBERS: Readonly<Record<GaugeMerge, (one: number, other: number) => number>> = {
  sum: (one, other) => one + other,
  max: Math.max,
  min: Math.min,
  last: (_, other) => other,
}

/**
 * Merges snapshots of registries that declare the same metrics, or metrics with different names.
 *
 * Counters and histograms are added, gauges are merged as declared. Families and series keep the order of their first
 * occurrence. Throws `SLUICE_RUNTIME_INVALID_OPTION` if two snapshots declare one name differently. The number of
 * series is at most the sum of theirs.
 */
export function mergeSnapshots(snapshots: readonly MetricsSnapshot[]): MetricsSnapshot {
  const byName = new Map<string, MetricFamily[]>()
  for (const family of snapshots.flatMap((snapshot) => snapshot.families)) {
    const known = byName.get(family.name)
    if (known === undefined) byName.set(family.name, [family])
    else known.push(family)
  }
  return { families: Array.from(byName.values(), mergeFamilies) }
}

function mergeFamilies(families: readonly MetricFamily[]): MetricFamily {
  const first = families[0] as MetricFamily
  for (const family of families) {
    if (shapeOf(family) === shapeOf(first)) continue
    throw invalidOption('snapshots', family.name, 'one declaration of a metric, the same in every snapshot')
  }
  if (first.type === 'histogram') {
    // Same shape, so all are histograms.
    return { ...first, samples: mergeSamples(families as readonly HistogramFamily[], addHistograms) }
  }
  const merge = MERGE_NUMBERS[first.type === 'gauge' ? first.merge : 'sum']
  const samples = mergeSamples(families as readonly { readonly samples: readonly NumberSample[] }[], (one, other) => ({
    ...one,
    value: merge(one.value, other.value),
  }))
  return { ...first, samples }
}

/** The declaration of a family, without values. */
function shapeOf(family: MetricFamily): string {
  return JSON.stringify({ ...family, samples: [] })
}

function mergeSamples<Sample extends { readonly values: readonly string[] }>(
  families: readonly { readonly samples: readonly Sample[] }[],
  merge: (one: Sample, other: Sample) => Sample,
): Sample[] {
  const byValues = new Map<string, Sample>()
  for (const sample of families.flatMap((family) => family.samples)) {
    const key = JSON.stringify(sample.values)
    const known = byValues.get(key)
    byValues.set(key, known === undefined ? sample : merge(known, sample))
  }
  return [...byValues.values()]
}

function addHistograms(one: HistogramSample, other: HistogramSample): HistogramSample {
  const counts = one.counts.map((count, bucket) => count + (other.counts[bucket] as number))
  return { values: one.values, counts, sum: one.sum + other.sum }
}
