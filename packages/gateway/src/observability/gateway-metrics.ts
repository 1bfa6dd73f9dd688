import type { Counter, CounterSeries, GaugeSeries, HistogramSeries, MetricRegistry } from '@sluice/runtime'

/** Upper bounds in seconds. */
const DURATION_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60] as const

/** First digit of a status, by index; 0 stands for no response: the client left before one. */
const CLASSES = ['none', '1xx', '2xx', '3xx', '4xx', '5xx'] as const

/** Why the gateway closed a connection without a request. */
const REJECTIONS = [
  'malformed',
  'timeout',
  'headers',
  'pipeline',
  'connections',
  'proxy-protocol',
  'tls',
  'upgrade',
] as const

export type Rejection = (typeof REJECTIONS)[number]

const MS_PER_SECOND = 1000

/** Series of one route: looked up once for a configuration. */
export interface RouteMetrics {
  /** By class of status, see {@link CLASSES}. */
  readonly requests: readonly CounterSeries[]
  readonly duration: HistogramSeries
  readonly denied: CounterSeries
  readonly failures: CounterSeries
  readonly retries: CounterSeries
  readonly broken: CounterSeries
}

/** What metrics need to know of a request. */
export interface MeasuredExchange {
  readonly activeRoute: { readonly metrics: RouteMetrics } | undefined
  readonly status: number
  readonly outcome: { readonly allowed: boolean } | undefined
}

/** Metrics of a gateway. Labels are names of the configuration, never anything that clients send. */
export class GatewayMetrics {
  readonly #requests: Counter<['route', { name: 'status'; values: typeof CLASSES }]>
  readonly #unrouted: readonly CounterSeries[]
  readonly #inFlight: GaugeSeries
  readonly #rejected: Readonly<Record<Rejection, CounterSeries>>
  readonly #ofRoute: (route: string, upstream: string) => RouteMetrics

  /** `connections`: number of open connections of clients. */
  constructor(registry: MetricRegistry, connections: () => number) {
    this.#requests = registry.counter({
      name: 'sluice_gateway_requests_total',
      help: 'Requests by route and class of the response status; none: the client left before a response.',
      labels: ['route', { name: 'status', values: CLASSES }],
    })
    const duration = registry.histogram({
      name: 'sluice_gateway_request_duration_seconds',
      help: 'Duration of requests from their headers to the end of the response.',
      labels: ['route'],
      bounds: DURATION_BOUNDS,
    })
    const denied = registry.counter({
      name: 'sluice_gateway_denied_total',
      help: 'Requests that limits denied.',
      labels: ['route'],
    })
    const failures = registry.counter({
      name: 'sluice_gateway_upstream_failures_total',
      help: 'Attempts without a response: no connection, a broken connection, or no answer in time.',
      labels: ['upstream'],
    })
    const retries = registry.counter({
      name: 'sluice_gateway_retries_total',
      help: 'Attempts after the first one of a request.',
      labels: ['upstream'],
    })
    const broken = registry.counter({
      name: 'sluice_gateway_broken_responses_total',
      help: 'Responses that an upstream broke off after their beginning.',
      labels: ['upstream'],
    })
    const rejected = registry.counter({
      name: 'sluice_gateway_rejected_total',
      help: 'Connections and bytes that did not become a request.',
      labels: [{ name: 'reason', values: REJECTIONS }],
    })
    const open = registry
      .gauge({ name: 'sluice_gateway_connections', help: 'Open connections of clients.', merge: 'sum' })
      .labels()
    this.#inFlight = registry
      .gauge({ name: 'sluice_gateway_in_flight', help: 'Requests in flight.', merge: 'sum' })
      .labels()
    registry.beforeSnapshot(() => open.set(connections()))
    this.#rejected = Object.fromEntries(REJECTIONS.map((reason) => [reason, rejected.labels({ reason })])) as Readonly<
      Record<Rejection, CounterSeries>
    >
    this.#unrouted = this.#byClass('')
    this.#ofRoute = (route, upstream) => ({
      requests: this.#byClass(route),
      duration: duration.labels({ route }),
      denied: denied.labels({ route }),
      failures: failures.labels({ upstream }),
      retries: retries.labels({ upstream }),
      broken: broken.labels({ upstream }),
    })
  }

  /** Series of a route. The same for the same names. */
  ofRoute(route: { readonly name: string; readonly upstream: string }): RouteMetrics {
    return this.#ofRoute(route.name, route.upstream)
  }

  begun(): void {
    this.#inFlight.add(1)
  }

  ended({ activeRoute, status, outcome }: MeasuredExchange, durationMs: number): void {
    this.#inFlight.add(-1)
    const metrics = activeRoute?.metrics
    const requests = metrics === undefined ? this.#unrouted : metrics.requests
    requests[Math.min(Math.floor(status / 100), CLASSES.length - 1)]!.inc()
    if (metrics === undefined) return
    metrics.duration.observe(durationMs / MS_PER_SECOND)
    if (outcome?.allowed === false) metrics.denied.inc()
  }

  upstreamFailed({ activeRoute }: MeasuredExchange): void {
    activeRoute?.metrics.failures.inc()
  }

  retried({ activeRoute }: MeasuredExchange): void {
    activeRoute?.metrics.retries.inc()
  }

  brokenOff({ activeRoute }: MeasuredExchange): void {
    activeRoute?.metrics.failures.inc()
    activeRoute?.metrics.broken.inc()
  }

  rejected(reason: Rejection): void {
    this.#rejected[reason].inc()
  }

  #byClass(route: string): readonly CounterSeries[] {
    return CLASSES.map((status) => this.#requests.labels({ route, status }))
  }
}
