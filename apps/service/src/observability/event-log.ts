import type { ConfigEvent } from '@sluice/config-store'
import { urlWithoutSecrets } from '@sluice/core/options'
import type { PolicyEvent } from '@sluice/core/policy'
import type { LeaseEvent, StoreEvent } from '@sluice/core/store'
import type { Logger, NowMs } from '@sluice/runtime'
import type { RedisSettings } from '../settings.ts'
import { errorFields } from './error-fields.ts'
import { isStoreError } from './metrics/store-metrics.ts'
import { digestOf } from './top-callers.ts'

/** What an {@link EventLog} works with. */
export interface EventLogParts {
  readonly log: Logger
  readonly nowMs: NowMs
  /** Goes into the digests that stand for callers; read at each use. */
  readonly secret: Uint8Array
  /** Where counters live; undefined when they live in this process. */
  readonly redis?: Pick<RedisSettings, 'urls' | 'failureMode'> | undefined
}

/** A trouble that goes on is told again after so long. */
const SAME_TROUBLE_MS = 10_000

/** The store has to answer for so long without a failure before it counts as back: part of a cluster may still be lost. */
const STEADY_MS = 1000

/** Places in a rule set that one line lists at most. */
const MOST_PATHS = 10

/** Writes what goes wrong into the log: one line for each trouble, whatever number of requests it concerns. */
export class EventLog {
  readonly #log: Logger
  readonly #nowMs: NowMs
  readonly #secret: Uint8Array
  readonly #redis: Readonly<Record<string, unknown>>
  readonly #toldAt = new Map<string, number>()
  /** What was logged since the rules changed last. */
  readonly #firsts = new Set<string>()
  /** When the store was lost; undefined while it answers. */
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
   * Tells once that the store is lost, and once that it is back. Lost: the breaker has opened, or a call was refused or could not
   * be sent. A single answer that is late is told of, and is no loss.
   */
  store(event: StoreEvent): void {
    switch (event.type) {
      case 'breaker':
        if (event.state === 'open') this.#storeLost({ cause: 'breaker' })
        return
      case 'failed':
        // While it is not asked there is nothing new to say.
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
    this.#log.warn('Redis is lost: checks are decided by failure mode', { ...this.#redis, ...fields })
  }

  #storeAnswered(lostMs: number): void {
    const nowMs = this.#nowMs()
    const steadyMs = nowMs - this.#storeFailedMs
    // A clock that was set back must not keep it lost.
    if (steadyMs >= 0 && steadyMs < STEADY_MS) return
    this.#storeLostMs = undefined
    // As loud as the loss, so that whoever saw the one sees the other.
    this.#log.warn('Redis is back: checks are counted there again', { ...this.#redis, afterMs: nowMs - lostMs })
  }

  lease(event: LeaseEvent): void {
    if (event.type !== 'lease-failed') return
    const { rule, error } = event
    this.#tellAgain('the store could not be asked for a lease, or told about one', () => ({
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
        this.#log.error('a block holds on this node only: it could not be handed on', {
          ...this.#blockFields(event.block),
          error: errorFields(event.error),
        })
        return
      case 'shadow-failed':
        this.#tellAgain('what is in shadow could not be measured', () => ({ error: errorFields(event.error) }))
        return
      case 'penalty-failed':
        this.#tellAgain('a refusal could not be counted for a penalty', () => ({ error: errorFields(event.error) }))
        return
      case 'override-unusable':
        this.#tellAgain('an override cannot be applied to a rule', () => ({ rule: event.rule, problem: event.problem }))
        return
      case 'burst-unusable':
        this.#tellAgain('the burst of a tier cannot be added to a rule, which goes without', () => {
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
            'Metric ratelimit_unmatched_checks_total counts them. "sluice explain" says for a request why no rule matches.',
        }))
        return
      }
      default:
      // What was measured is counted, not told.
    }
  }

  /** A check by descriptors matched no limit of its domain. */
  unmatchedDescriptors(): void {
    this.#tellFirst('a check by descriptors matched no limit', () => ({
      advice:
        'Metric ratelimit_unmatched_checks_total counts them. "sluice rules list" shows domains and their limits.',
    }))
  }

  /** A request names no caller. */
  anonymous(): void {
    this.#tellFirst('a check names no caller: no user, API key, tenant, service, address or descriptor', () => ({
      advice:
        'Metric ratelimit_anonymous_checks_total counts them. Only rules with dimension global limit such requests: send who calls.',
    }))
  }

  /** Other rules are in force: what is logged for the first time only is logged once more. */
  rulesChanged(): void {
    this.#firsts.clear()
  }

  config(event: ConfigEvent): void {
    switch (event.type) {
      case 'refreshed': {
        const { source, enforcedVersion, candidateVersion, changes, reloaded } = event
        this.#log.info('the configuration in force has changed', {
          source,
          enforcedVersion,
          candidateVersion,
          changes,
          reloaded,
        })
        return
      }
      case 'recovered':
        // As loud as the loss, so that whoever saw the one sees the other.
        this.#log.warn('the configuration can be read again', { afterMs: event.afterMs })
        return
      case 'cache-refused':
        this.#log.warn('the kept copy of the configuration cannot be used', { reason: event.reason })
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

  /** Logs something the first time that it happens under the rules in force. Metrics count all of them. */
  #tellFirst(message: string, fieldsOf: () => Readonly<Record<string, unknown>>): void {
    if (this.#firsts.has(message)) return
    this.#firsts.add(message)
    this.#log.warn(message, fieldsOf())
  }

  /** Tells of a trouble, unless it has been told a moment ago. */
  #tellAgain(message: string, fieldsOf: () => Readonly<Record<string, unknown>>): void {
    const nowMs = this.#nowMs()
    const toldAt = this.#toldAt.get(message)
    // A clock that was set back must not silence it for long.
    if (toldAt !== undefined && nowMs - toldAt < SAME_TROUBLE_MS && nowMs >= toldAt) return
    this.#toldAt.set(message, nowMs)
    this.#log.warn(message, fieldsOf())
  }
}

/** What a request may say of its caller. The log says which of them there are, and nothing of what a request holds. */
const IDENTITIES = ['user', 'apiKey', 'tenant', 'service', 'ip', 'descriptors'] as const

const CONFIG_TROUBLES = {
  refused: { message: 'a version of the rules cannot be used; what was in force stays', level: 'error' },
  unavailable: { message: 'the configuration cannot be read; limits go on with what is known', level: 'warn' },
  'hints-lost': { message: 'notifications of changes may be missing; they are looked for instead', level: 'warn' },
  'cache-failed': { message: 'the copy of the configuration for a start without it cannot be written', level: 'warn' },
} as const
