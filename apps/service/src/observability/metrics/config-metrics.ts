import type { ConfigEvent, ConfigFollower, ConfigStats } from '@sluice/config-store'
import type { CounterSeries, GaugeSeries, MetricRegistry } from '@sluice/runtime'
import { METRIC } from './metric-names.ts'

const MS_PER_SECOND = 1000

/** Shows how up to date the rules of a thread are, whenever metrics are read. The function returned ends it. */
export function watchConfig(registry: MetricRegistry, follower: Pick<ConfigFollower, 'stats'>): () => void {
  const counters: readonly [CounterSeries, (stats: ConfigStats) => number][] = [
    [
      counterIn(registry, 'ratelimit_config_refreshes_total', 'Looks at the configuration that succeeded.'),
      ({ refreshes }) => refreshes,
    ],
    [
      counterIn(registry, 'ratelimit_config_failures_total', 'Looks at the configuration that failed.'),
      ({ failures }) => failures,
    ],
    [
      counterIn(registry, 'ratelimit_config_notifications_total', 'Hints that the configuration was changed.'),
      ({ notifications }) => notifications,
    ],
    [
      counterIn(registry, 'ratelimit_config_polls_total', 'Looks at the configuration without a hint.'),
      ({ polls }) => polls,
    ],
  ]
  // A version is in force when every thread has it, and rules are as old as the oldest.
  const version = gaugeIn(registry, METRIC.configVersion, { help: 'Number of the version in force.', merge: 'min' })
  const candidate = gaugeIn(registry, 'ratelimit_config_candidate_version', {
    help: 'Number of the version that is tried out; 0 when none is.',
    merge: 'min',
  })
  const lag = gaugeIn(registry, METRIC.configLag, {
    help: 'Seconds that the rules in force are behind.',
    merge: 'max',
  })
  const refused = gaugeIn(registry, 'ratelimit_config_refused_versions', {
    help: 'Versions that should be in force and cannot be used.',
    merge: 'max',
  })
  return registry.beforeSnapshot(() => {
    const stats = follower.stats()
    for (const [counter, read] of counters) counter.inc(Math.max(0, read(stats) - counter.value))
    version.set(stats.enforcedVersion ?? 0)
    candidate.set(stats.candidateVersion ?? 0)
    lag.set(stats.lagMs / MS_PER_SECOND)
    refused.set(stats.refused.length)
  })
}

/** Counts, in one thread, how often something else was put in force. */
export class ConfigMetrics {
  readonly #changes: CounterSeries

  constructor(registry: MetricRegistry) {
    this.#changes = counterIn(
      registry,
      'ratelimit_config_changes_total',
      'Times that other rules or entries were put in force.',
    )
  }

  record(event: ConfigEvent): void {
    if (event.type === 'refreshed') this.#changes.inc()
  }
}

function counterIn(registry: MetricRegistry, name: string, help: string): CounterSeries {
  return registry.counter({ name, help }).labels()
}

function gaugeIn(
  registry: MetricRegistry,
  name: string,
  options: { readonly help: string; readonly merge: 'min' | 'max' },
): GaugeSeries {
  return registry.gauge({ name, ...options }).labels()
}
