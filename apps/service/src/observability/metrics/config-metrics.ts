import type { ConfigFollower, ConfigStats } from '@sluice/config-store'
import type { CounterSeries, GaugeSeries, MetricRegistry } from '@sluice/runtime'
import { METRIC } from './metric-names.ts'

const MS_PER_SECOND = 1000

/** Metrics of the configuration of a thread. The returned function ends it. */
export function watchConfig(registry: MetricRegistry, follower: Pick<ConfigFollower, 'stats'>): () => void {
  const counters: readonly [CounterSeries, (stats: ConfigStats) => number][] = [
    [
      counterIn(registry, 'ratelimit_config_refreshes_total', 'Successful reads of the configuration.'),
      ({ refreshes }) => refreshes,
    ],
    [
      counterIn(registry, 'ratelimit_config_failures_total', 'Failed reads of the configuration.'),
      ({ failures }) => failures,
    ],
    [
      counterIn(registry, 'ratelimit_config_notifications_total', 'Notifications of configuration changes.'),
      ({ notifications }) => notifications,
    ],
    [
      counterIn(registry, 'ratelimit_config_polls_total', 'Looks at the configuration without a hint.'),
      ({ polls }) => polls,
    ],
  ]
  // The version that all threads have, and the age of the oldest rules.
  const version = gaugeIn(registry, METRIC.configVersion, { help: 'Number of the active version.', merge: 'min' })
  const candidate = gaugeIn(registry, 'ratelimit_config_candidate_version', {
    help: 'Number of the candidate version; 0: none.',
    merge: 'min',
  })
  const lag = gaugeIn(registry, METRIC.configLag, {
    help: 'Seconds that the active rules are out of date.',
    merge: 'max',
  })
  const refused = gaugeIn(registry, 'ratelimit_config_refused_versions', {
    help: 'Enforced versions that cannot be used.',
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

/** Counts configuration changes of one thread. */
export function configChangesIn(registry: MetricRegistry): CounterSeries {
  return counterIn(registry, 'ratelimit_config_changes_total', 'Times that other rules or entries were put in force.')
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
