import type { ConfigEvent } from '@sluice/config-store'
import { urlWithoutSecrets } from '@sluice/core/options'
import type { PolicyEvent } from '@sluice/core/policy'
import type { LeaseEvent, StoreEvent } from '@sluice/core/store'
import type { Logger, NowMs } from '@sluice/runtime'
import type { RedisSettings } from '../settings/settings.ts'
import { errorFields } from './error-fields.ts'
import { isStoreError } from './metrics/store-metrics.ts'
import { digestOf } from './top-callers.ts'

/** Options of {@link EventLog}. */
export interface EventLogParts {
  readonly log: Logger
  readonly nowMs: NowMs
  /** Key of the digests that replace callers; read at each use. */
  readonly secret: Uint8Array
  /** Undefined if counters are in memory. */
  readonly redis?: Pick<RedisSettings, 'urls' | 'failureMode'> | undefined
}

/** A problem that lasts is logged again after this time. */
const SAME_TROUBLE_MS = 10_000

/** Time without failures before the store counts as available again: part of a cluster may still be down. */
const STEADY_MS = 1000

/** Maximum number of paths of a rule set in one line. */
const MOST_PATHS = 10

/** Logs problems: one line per problem, however many requests it affects. */
export class EventLog {
  readonly #log: Logger
  readonly #nowMs: NowMs
  readonly #secret: Uint8Array
  readonly #redis: Readonly<Record<string, unknown>>
  readonly #toldAt = new Map<string, number>()
  /** Messages logged since the last change of the rules. */
  readonly #firsts = new Set<string>()
  /** When the store became unavailable; undefined while it is available. */
  #storeLostMs: number | undefined
  #storeFailedMs = 0

  constructor({ log, nowMs, secret, redis }: EventLogParts) {
    this.#log = log
    this.#nowMs = nowMs
    this.#secret = secret
    this.#redis =
      redis === undefined ? {} : { redis: redis.urls.map(urlWithoutSecrets).join(', '), failureMode: redis.failureMode }
  }

  /**
   * Logs once that the store is unavailable, and once that it is available again. Unavailable: the breaker has opened,
   * or a call was rejected or could not be sent. A single late reply is logged, but does not count as unavailable.
   */
  store(event: StoreEvent): void {
    switch (event.type) {
      case 'breaker':
        if (event.state === 'open') this.#storeLost({ cause: 'breaker' })
        return
      case 'failed':
        // Skipped calls say nothing new.
        if (event.cause !== 'breaker') this.#storeFailed(event)
        return
      case 'asked':
        if (event.outcome === 'answered' && this.#storeLostMs !== undefined) this.#storeAnswered(this.#storeLostMs)
        return
      default:
    }
  }

  #storeFailed(event: Extract<StoreEvent, { readonly type: 'failed' }>): void {
    const { cause, charged, error } = event
    const fields = { cause, charged, ...(error === undefined ? {} : { error: errorFields(error) }) }
    if (cause !== 'deadline') this.#storeLost(fields)
    else if (this.#storeLostMs === undefined && isStoreError(event)) {
      this.#tellAgain('Redis did not answer in time', () => fields)
    }
    this.#storeFailedMs = this.#nowMs()
  }

  #storeLost(fields: Readonly<Record<string, unknown>>): void {
    this.#storeFailedMs = this.#nowMs()
    if (this.#storeLostMs !== undefined) return
    this.#storeLostMs = this.#storeFailedMs
    this.#log.warn('Redis is unavailable: failure modes decide', { ...this.#redis, ...fields })
  }

  #storeAnswered(lostMs: number): void {
    const nowMs = this.#nowMs()
    const steadyMs = nowMs - this.#storeFailedMs
    // A clock that was set back must not delay it.
    if (steadyMs >= 0 && steadyMs < STEADY_MS) return
    this.#storeLostMs = undefined
    // The same level as the failure, so that both are seen.
    this.#log.warn('Redis is available again', { ...this.#redis, afterMs: nowMs - lostMs })
  }

  lease(event: LeaseEvent): void {
    if (event.type !== 'lease-failed') return
    const { rule, error } = event
    this.#tellAgain('could not request or return a lease', () => ({
      rule,
      error: errorFields(error),
    }))
  }

  policy(event: PolicyEvent): void {
    switch (event.type) {
      case 'blocked':
        this.#log.info('a caller was blocked', this.#blockFields(event.block))
        return
      case 'block-not-kept':
        this.#log.error('could not share a block: it applies on this node only', {
          ...this.#blockFields(event.block),
          error: errorFields(event.error),
        })
        return
      case 'shadow-failed':
        this.#tellAgain('could not measure a shadow rule', () => ({ error: errorFields(event.error) }))
        return
      case 'penalty-failed':
        this.#tellAgain('could not count a denial for a penalty', () => ({ error: errorFields(event.error) }))
        return
      case 'override-unusable':
        this.#tellAgain('could not apply an override to a rule', () => ({ rule: event.rule, problem: event.problem }))
        return
      case 'burst-unusable':
        this.#tellAgain('could not add the burst of a tier to a rule', () => {
          const { rule, tiers, problem, version } = event
          return { rule, tiers, problem, version }
        })
        return
      case 'dimension-undeclared': {
        const { dimension, nearest, paths, version } = event
        const meant = nearest === undefined ? '' : `Did you mean "${nearest}"? `
        this.#log.warn('rules use a dimension that is neither built in nor declared, so they may match no request', {
          dimension,
          paths: paths.slice(0, MOST_PATHS),
          version,
          advice: `${meant}Correct it, or list it under "dimensions" in the rule set.`,
        })
        return
      }
      case 'unmatched': {
        const { request, version } = event
        this.#tellFirst('a check matched no rule', () => ({
          identities: IDENTITIES.filter((name) => request[name] !== undefined),
          version,
          advice:
            'Metric ratelimit_unmatched_checks_total counts them. "sluice explain" says for a request why no rule ' +
            'matches.',
        }))
        return
      }
      default:
      // Counted in metrics, not logged.
    }
  }

  /** A check by descriptors matched no limit, of its domain or because there is no such domain. */
  unmatchedDescriptors(isUnknownDomain: boolean): void {
    this.#tellFirst(`a check by descriptors ${isUnknownDomain ? 'has an unknown domain' : 'matched no limit'}`, () => ({
      advice:
        'Metric ratelimit_unmatched_checks_total counts them. "sluice rules list" shows domains and their limits.',
    }))
  }

  /** A request names no caller. */
  anonymous(): void {
    this.#tellFirst('a check names no caller: no user, API key, tenant, service, address or descriptor', () => ({
      advice:
        'Metric ratelimit_anonymous_checks_total counts them. Only rules with dimension global limit such ' +
        'requests: send who calls.',
    }))
  }

  /** The rules have changed: messages that are logged once are logged again. */
  rulesChanged(): void {
    this.#firsts.clear()
  }

  config(event: ConfigEvent): void {
    switch (event.type) {
      case 'refreshed': {
        const { source, enforcedVersion, candidateVersion, changes, reloaded } = event
        this.#log.info('the configuration has changed', {
          source,
          enforcedVersion,
          candidateVersion,
          changes,
          reloaded,
        })
        return
      }
      case 'recovered':
        // The same level as the failure, so that both are seen.
        this.#log.warn('the configuration is readable again', { afterMs: event.afterMs })
        return
      case 'cache-refused':
        this.#log.warn('could not use the saved copy of the configuration', { reason: event.reason })
        return
      default: {
        const { message, level } = CONFIG_TROUBLES[event.type]
        const version = event.type === 'refused' && event.version !== undefined ? { version: event.version } : {}
        this.#log[level](message, { ...version, error: errorFields(event.error) })
      }
    }
  }

  #blockFields(block: Extract<PolicyEvent, { readonly type: 'blocked' }>['block']): Readonly<Record<string, unknown>> {
    const { dimension, entity, until, strikes, rule } = block
    return {
      dimension,
      caller: digestOf(entity, this.#secret),
      until,
      strikes,
      ...(rule === undefined ? {} : { rule }),
    }
  }

  /** Logs the first occurrence under the active rules. Metrics count all. */
  #tellFirst(message: string, fieldsOf: () => Readonly<Record<string, unknown>>): void {
    if (this.#firsts.has(message)) return
    this.#firsts.add(message)
    this.#log.warn(message, fieldsOf())
  }

  /** Logs a problem, unless it was logged recently. */
  #tellAgain(message: string, fieldsOf: () => Readonly<Record<string, unknown>>): void {
    const nowMs = this.#nowMs()
    const toldAt = this.#toldAt.get(message)
    // A clock that was set back must not suppress it for long.
    if (toldAt !== undefined && nowMs - toldAt < SAME_TROUBLE_MS && nowMs >= toldAt) return
    this.#toldAt.set(message, nowMs)
    this.#log.warn(message, fieldsOf())
  }
}

/** Identities of a request. The log contains their names, never their values. */
const IDENTITIES = ['user', 'apiKey', 'tenant', 'service', 'ip', 'descriptors'] as const

const CONFIG_TROUBLES = {
  refused: { message: 'a version of the rules cannot be used; the previous one stays active', level: 'error' },
  unavailable: { message: 'could not read the configuration; the last known one stays active', level: 'warn' },
  'hints-lost': { message: 'change notifications may be missing; polling for changes', level: 'warn' },
  'cache-failed': { message: 'could not save the copy of the configuration', level: 'warn' },
} as const
