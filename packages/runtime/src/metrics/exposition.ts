import type { HistogramFamily, HistogramSample, MetricFamily, MetricsSnapshot } from './metrics-snapshot.ts'

/** A metrics page: the body of an HTTP response. */
export interface MetricsPage {
  readonly contentType: string
  readonly body: string
}

const CONTENT_TYPES: Readonly<Record<ExpositionFormat, string>> = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

/**
 * Renders a snapshot in the format that the `Accept` header requests: OpenMetrics 1.0, or the Prometheus text format
 * 0.0.4, which is the default.
 */
export function renderMetrics(snapshot: MetricsSnapshot, accept?: string): MetricsPage {
  const format = acceptedFormat(accept)
  const lines = snapshot.families.flatMap((family) => familyLines(family, format))
  if (format === 'openmetrics') lines.push('# EOF')
  return { contentType: CONTENT_TYPES[format], body: lines.map((line) => `${line}\n`).join('') }
}

function familyLines(family: MetricFamily, format: ExpositionFormat): string[] {
  if (family.type === 'histogram') {
    const lines = histogramLines(family, format)
    return family.alsoAs === undefined ? lines : [...lines, ...histogramLines(inView(family), format)]
  }
  // In OpenMetrics the counter `a` has the samples `a_total`; in the older format both are `a_total`.
  const isOpenCounter = format === 'openmetrics' && family.type === 'counter'
  const head = headLines(family, isOpenCounter ? family.name.slice(0, -'_total'.length) : family.name, format)
  const samples = family.samples.map(
    ({ values, value }) => `${family.name}${labelText(family.labels, values)} ${value}`,
  )
  return [...head, ...samples]
}

function headLines(family: MetricFamily, name: string, format: ExpositionFormat): string[] {
  const help = format === 'openmetrics' ? escapeQuoted(family.help) : escapeLine(family.help)
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${family.type}`]
}

function histogramLines(family: HistogramFamily, format: ExpositionFormat): string[] {
  const bounds = [...family.bounds.map((bound) => boundText(bound, format)), '+Inf']
  return [
    ...headLines(family, family.name, format),
    ...family.samples.flatMap((sample) => histogramSampleLines(family, sample, bounds)),
  ]
}

function histogramSampleLines(
  { name, labels }: HistogramFamily,
  { values, counts, sum }: HistogramSample,
  bounds: readonly string[],
): string[] {
  const own = labelText(labels, values)
  const bounded = [...labels, 'le']
  let below = 0
  const buckets = bounds.map((bound, bucket) => {
    below += counts[bucket] as number
    return `${name}_bucket${labelText(bounded, [...values, bound])} ${below}`
  })
  return [...buckets, `${name}_sum${own} ${sum}`, `${name}_count${own} ${below}`]
}

/** The histogram under its second name, with everything in the greater unit. */
function inView(family: HistogramFamily): HistogramFamily {
  const { name, divisor } = family.alsoAs as NonNullable<HistogramFamily['alsoAs']>
  // Rounded off, because 0.07 / 1000 is a little more than 0.00007, and a bound is a name that must not change.
  const inUnit = (value: number): number => Number((value / divisor).toPrecision(12))
  return {
    ...family,
    name,
    bounds: family.bounds.map(inUnit),
    samples: family.samples.map((sample) => ({ ...sample, sum: sample.sum / divisor })),
  }
}

/** How a bound is written: OpenMetrics has one string for each number, the older format that of most programs. */
function boundText(bound: number, format: ExpositionFormat): string {
  if (format === 'prometheus') return String(bound)
  const magnitude = Math.abs(bound)
  if (magnitude !== 0 && (magnitude < 1e-4 || magnitude >= 1e6)) {
    // At least two digits of exponent, as 1e-05.
    return bound.toExponential().replace(/e([+-])(\d)$/, 'e$10$2')
  }
  return Number.isInteger(bound) ? `${bound}.0` : String(bound)
}

function labelText(names: readonly string[], values: readonly string[]): string {
  if (names.length === 0) return ''
  return `{${names.map((name, index) => `${name}="${escapeQuoted(values[index] as string)}"`).join(',')}}`
}

function escapeLine(text: string): string {
  return text.toWellFormed().replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

function escapeQuoted(text: string): string {
  return escapeLine(text).replaceAll('"', '\\"')
}

/** The formats that a page of metrics can have. */
export type ExpositionFormat = 'prometheus' | 'openmetrics'

interface MediaRange {
  readonly type: string
  readonly version: string | undefined
  /** 0 to 1. */
  readonly weight: number
}

/**
 * The format that an `Accept` header asks for: OpenMetrics 1.0 when it is named and nothing that matches the Prometheus
 * text format is wanted more; Prometheus text in every other case, also without a header.
 */
export function acceptedFormat(accept: string | undefined): ExpositionFormat {
  const ranges = (accept ?? '').split(',').map(parseRange)
  const weightOf = (matches: (range: MediaRange) => boolean): number =>
    Math.max(0, ...ranges.filter(matches).map((range) => range.weight))
  const open = weightOf(
    ({ type, version }) => type === 'application/openmetrics-text' && (version === undefined || version === '1.0.0'),
  )
  const named = ranges.some(isPrometheusText)
  const plain = weightOf((range) => (named ? isPrometheusText(range) : range.type === 'text/*' || range.type === '*/*'))
  return open > 0 && open >= plain ? 'openmetrics' : 'prometheus'
}

function isPrometheusText({ type, version }: MediaRange): boolean {
  return type === 'text/plain' && (version === undefined || version === '0.0.4')
}

function parseRange(text: string): MediaRange {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
  const parameter = (name: string): string | undefined =>
    parameters
      .find((part) => part.startsWith(`${name}=`))
      ?.slice(name.length + 1)
      .replaceAll('"', '')
  const weight = Number(parameter('q') ?? 1)
  return { type, version: parameter('version'), weight: weight >= 0 && weight <= 1 ? weight : 0 }
}
