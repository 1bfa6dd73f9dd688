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
