import type { PolicyEngine, PolicyEvent } from '@sluice/core/policy'
import type { Counter, CounterSeries, MetricRegistry } from '@sluice/runtime'

const ORIGINS = ['penalty', 'set'] as const

/** Counts engine events of one thread, except decisions. */
export class EngineMetrics {
  readonly #blocks: Counter<['dimension', { readonly name: 'origin'; readonly values: typeof ORIGINS }]>
  readonly #failures: Readonly<
    Record<'shadow-failed' | 'block-not-kept' | 'penalty-failed' | 'override-unusable', CounterSeries>
  >

  constructor(registry: MetricRegistry) {
    const count = (name: string, help: string): CounterSeries => registry.counter({ name, help }).labels()
    this.#blocks = registry.counter({
      name: 'ratelimit_blocks_total',
      help: 'Blocked callers, by penalty or by an operator.',
      labels: ['dimension', { name: 'origin', values: ORIGINS }],
      mostSeries: 100,
    })
    this.#failures = {
      'shadow-failed': count('ratelimit_shadow_failures_total', 'Shadow checks that failed.'),
      'block-not-kept': count('ratelimit_blocks_not_kept_total', 'Blocks that could not be shared with other nodes.'),
      'penalty-failed': count('ratelimit_penalty_failures_total', 'Denials that could not be counted for a penalty.'),
      'override-unusable': count(
        'ratelimit_overrides_unusable_total',
        'Times that an override could not be applied to a rule.',
      ),
    }
  }

  /**
   * Counts an event. Shadow decisions and unmatched requests are counted with checks. Events that occur once per rule
   * set are not counted.
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

/** Metrics of the entries of an engine. The returned function ends it. */
export function watchEngine(registry: MetricRegistry, engine: PolicyEngine): () => void {
  const entries = registry.gauge({
    name: 'ratelimit_entries',
    help: 'Active entries: overrides, members of tiers, blocks.',
    labels: [{ name: 'kind', values: ['override', 'member', 'block'] }],
    merge: 'max',
  })
  const dropped = registry
    .gauge({
      name: 'ratelimit_blocks_dropped',
      help: 'Blocks dropped because the table was full, since the start.',
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
