import type { IdentifierParts } from '@sluice/gateway'
import type { Logger, MetricRegistry } from '@sluice/runtime'
import { errorFields } from '../../observability/error-fields.ts'

const FAILURES = ['missing', 'unreadable', 'unknown-key', 'invalid-token', 'expired-token', 'reserved-user'] as const
const LOADS = ['ok', 'failed'] as const

/** Counts what the gateway finds out about callers, and reports when the keys of tokens cannot be loaded. */
export class IdentityMetrics {
  readonly hooks: Required<Pick<IdentifierParts, 'onFailure' | 'onKeySet'>>

  constructor(metrics: MetricRegistry, log: Logger) {
    const failures = metrics.counter({
      name: 'sluice_gateway_authentication_failures_total',
      help: 'Requests to the gateway that were not authenticated, by reason.',
      labels: [{ name: 'reason', values: FAILURES }],
    })
    const loads = metrics.counter({
      name: 'sluice_gateway_token_key_loads_total',
      help: 'Attempts to load the keys that tokens are verified with.',
      labels: [{ name: 'outcome', values: LOADS }],
    })
    // All series from the start, so that a rate over the first failure is not missing.
    for (const reason of FAILURES) failures.labels({ reason })
    for (const outcome of LOADS) loads.labels({ outcome })
    let isFailing = false
    this.hooks = {
      onFailure: (failure) => failures.labels({ reason: failure }).inc(),
      onKeySet: (error) => {
        loads.labels({ outcome: error === undefined ? 'ok' : 'failed' }).inc()
        if (error !== undefined && !isFailing) {
          log.error('the keys of tokens cannot be loaded: those loaded last stay in use', { error: errorFields(error) })
        } else if (error === undefined && isFailing) log.info('the keys of tokens were loaded again')
        isFailing = error !== undefined
      },
    }
  }
}
