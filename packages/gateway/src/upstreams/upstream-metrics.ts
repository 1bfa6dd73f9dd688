import type { MetricRegistry } from '@sluice/runtime'
import type { Upstream, UpstreamStats } from './upstream.ts'

/** What an instance is counted as. */
const STATES = ['available', 'unhealthy', 'paused', 'unresolved'] as const

const REASONS = ['no-healthy-instance', 'no-capacity'] as const

/**
 * Metrics of upstreams, read from their stats before each snapshot. The only open label is the name of the upstream,
 * which comes from the configuration; instances come and go with DNS and have no series of their own.
 */
export function watchUpstreams(registry: MetricRegistry, upstreams: () => Iterable<Upstream>): void {
  const instances = registry.gauge({
    name: 'sluice_gateway_upstream_instances',
    help: 'Instances of upstreams; paused: the breaker is open, unresolved: the name has no usable address.',
    labels: ['upstream', { name: 'state', values: STATES }],
    merge: 'max',
  })
  const inFlight = registry.gauge({
    name: 'sluice_gateway_upstream_in_flight',
    help: 'Requests in flight to the instances of an upstream.',
    labels: ['upstream'],
    merge: 'sum',
  })
  const limit = registry.gauge({
    name: 'sluice_gateway_upstream_concurrency_limit',
    help: 'Sum of the concurrency limits of the instances; 0 without limits.',
    labels: ['upstream'],
    merge: 'sum',
  })
  const turnedAway = registry.counter({
    name: 'sluice_gateway_turned_away_total',
    help: 'Requests that got a 503, because no instance of the upstream could take them.',
    labels: ['upstream', { name: 'reason', values: REASONS }],
  })
  const budget = registry.counter({
    name: 'sluice_gateway_retries_over_budget_total',
    help: 'Retries that the retry budget did not allow.',
    labels: ['upstream'],
  })
  const counted = new WeakMap<Upstream, Counts>()
  let names = new Set<string>()
  registry.beforeSnapshot(() => {
    const before = names
    names = new Set()
    for (const upstream of upstreams()) {
      const { name } = upstream
      const stats = upstream.stats()
      names.add(name)
      const states = statesOf(stats)
      for (const state of STATES) instances.labels({ upstream: name, state }).set(states[state])
      inFlight.labels({ upstream: name }).set(sumOf(stats, ({ inFlight: now }) => now))
      limit.labels({ upstream: name }).set(sumOf(stats, ({ concurrencyLimit = 0 }) => concurrencyLimit))
      const counts = countsOf(stats)
      const known = counted.get(upstream) ?? NO_COUNTS
      counted.set(upstream, counts)
      turnedAway.labels({ upstream: name, reason: 'no-healthy-instance' }).inc(counts.unhealthy - known.unhealthy)
      turnedAway.labels({ upstream: name, reason: 'no-capacity' }).inc(counts.full - known.full)
      budget.labels({ upstream: name }).inc(counts.overBudget - known.overBudget)
    }
    for (const upstream of before) {
      if (names.has(upstream)) continue
      for (const state of STATES) instances.labels({ upstream, state }).set(0)
      inFlight.labels({ upstream }).set(0)
      limit.labels({ upstream }).set(0)
    }
  })
}

interface Counts {
  readonly unhealthy: number
  readonly full: number
  readonly overBudget: number
}

const NO_COUNTS: Counts = { unhealthy: 0, full: 0, overBudget: 0 }

function countsOf({ turnedAway, retries }: UpstreamStats): Counts {
  return { unhealthy: turnedAway.noHealthyInstance, full: turnedAway.noCapacity, overBudget: retries.denied }
}

function sumOf({ instances }: UpstreamStats, read: (instance: UpstreamStats['instances'][number]) => number): number {
  return instances.reduce((sum, instance) => sum + read(instance), 0)
}

function statesOf({ instances, unresolved }: UpstreamStats): Record<(typeof STATES)[number], number> {
  const states = { available: 0, unhealthy: 0, paused: 0, unresolved: unresolved.length }
  for (const { health, breaker } of instances) {
    if (health === 'unhealthy') states.unhealthy++
    else if (breaker === 'closed') states.available++
    else states.paused++
  }
  return states
}
