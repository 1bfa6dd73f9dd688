import type { PolicyEngine, PolicyEvent } from '@sluice/core/policy'
import type { Counter, CounterSeries, MetricRegistry } from '@sluice/runtime'

const ORIGINS = ['penalty', 'set'] as const

/** Counts what engines tell besides decisions, in one thread. */
export class EngineMetrics {
  readonly #blocks: Counter<['dimension', { readonly name: 'origin'; readonly values: typeof ORIGINS }]>
  readonly #failures: Readonly<
    Record<'shadow-failed' | 'block-not-kept' | 'penalty-failed' | 'override-unusable', CounterSeries>
  >

  constructor(registry: MetricRegistry) {
    const count = (name: string, help: string): CounterSeries => registry.counter({ name, help }).labels()
    this.#blocks = registry.counter({
      name: 'ratelimit_blocks_total',
      help: 'Callers that were blocked, by penalty of a rule or because somebody set it.',
      labels: ['dimension', { name: 'origin', values: ORIGINS }],
      mostSeries: 100,
    })
    this.#failures = {
      'shadow-failed': count('ratelimit_shadow_failures_total', 'Shadows that could not be measured.'),
      'block-not-kept': count('ratelimit_blocks_not_kept_total', 'Blocks that hold here and could not be handed on.'),
      'penalty-failed': count('ratelimit_penalty_failures_total', 'Refusals that could not be counted for a penalty.'),
      'override-unusable': count(
        'ratelimit_overrides_unusable_total',
        'Times that an override could not be applied to a rule.',
      ),
    }
  }

  /**
   * Counts an event. Those of shadows that were measured and of unmatched requests belong to checks. What is told once for each
   * rule set is nothing to count.
   */
  record(event: Exclude<PolicyEvent, { readonly type: 'shadow' | 'unmatched' }>): void {
    if (event.type === 'burst-unusable' || event.type === 'dimension-undeclared') return
    if (event.type !== 'blocked') {
      this.#failures[event.type].inc()
      return
    }
    const { dimension, rule } = event.block
    this.#blocks.labels({ dimension, origin: rule === undefined ? 'set' : 'penalty' }).inc()
  }
}

/** Shows how many entries an engine holds, whenever metrics are read. The function returned ends it. */
export function watchEngine(registry: MetricRegistry, engine: PolicyEngine): () => void {
  const entries = registry.gauge({
    name: 'ratelimit_entries',
    help: 'Entries of the configuration in force: overrides, members of tiers, blocks.',
    labels: [{ name: 'kind', values: ['override', 'member', 'block'] }],
    merge: 'max',
  })
  const dropped = registry
    .gauge({
      name: 'ratelimit_blocks_dropped',
      help: 'Blocks forgotten early for lack of room, since the start.',
      merge: 'max',
    })
    .labels()
  return registry.beforeSnapshot(() => {
    const { overrides, members, blocks, droppedBlocks } = engine.entries.sizes
    entries.labels({ kind: 'override' }).set(overrides)
    entries.labels({ kind: 'member' }).set(members)
    entries.labels({ kind: 'block' }).set(blocks)
    dropped.set(droppedBlocks)
  })
}
