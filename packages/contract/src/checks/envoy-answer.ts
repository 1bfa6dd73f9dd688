import type { EnvoyUnit } from './envoy-request.ts'

/** Whether something is over its limit. */
export type EnvoyCode = 'OK' | 'OVER_LIMIT'

/** A limit as the answer tells it. */
export interface EnvoyCurrentLimit {
  /** Left out when it is 0. */
  readonly requestsPerUnit?: number
  readonly unit: EnvoyUnit
  /** Left out when it has none. */
  readonly name?: string
}

/** How one descriptor stands. */
export interface EnvoyStatus {
  readonly code: EnvoyCode
  /** Left out when nothing was counted, also because the store did not answer. */
  readonly currentLimit?: EnvoyCurrentLimit
  /** Hits that are left, 4,294,967,295 where a rule does not limit; left out when it is 0. */
  readonly limitRemaining?: number
  /** Until the window ends: whole seconds, rounded up, and `s`; left out when nothing was counted. */
  readonly durationUntilReset?: string
}

/**
 * A `RateLimitResponse` of the Envoy rate limit protocol as protobuf writes JSON, which leaves out what is 0 or empty: status 200
 * when it is `OK`, 429 when it is `OVER_LIMIT`.
 */
export interface EnvoyAnswer {
  readonly overallCode: EnvoyCode
  /** One for each descriptor, in their order. */
  readonly statuses: readonly EnvoyStatus[]
}

/** What this package needs to know of a decision on descriptors; those of the rule engine have this shape. */
export interface EnvoyDecisionLike {
  readonly code: 'ok' | 'over'
  readonly statuses: readonly {
    readonly code: 'ok' | 'over'
    /** Undefined when nothing was counted. */
    readonly limit:
      | {
          readonly requestsPerUnit: number
          readonly unit: Lowercase<EnvoyUnit>
          readonly name: string | undefined
        }
      | undefined
    /** Null when it is unknown. */
    readonly remaining: number | null
    readonly resetAfterSeconds: number
  }[]
}

/** The answer that tells `decision`. */
export function envoyAnswer({ code, statuses }: EnvoyDecisionLike): EnvoyAnswer {
  return { overallCode: CODES[code], statuses: statuses.map(statusOf) }
}

const CODES = { ok: 'OK', over: 'OVER_LIMIT' } as const

function statusOf({ code, limit, remaining, resetAfterSeconds }: EnvoyDecisionLike['statuses'][number]): EnvoyStatus {
  // The protocol cannot say "unknown": without a limit, Envoy announces none. A limit alone would read as 0 left.
  if (remaining === null) return { code: CODES[code] }
  return {
    code: CODES[code],
    ...(limit === undefined ? {} : { currentLimit: currentLimit(limit) }),
    ...(remaining === 0 ? {} : { limitRemaining: remaining }),
    ...(limit === undefined ? {} : { durationUntilReset: `${resetAfterSeconds}s` }),
  }
}

function currentLimit({
  requestsPerUnit,
  unit,
  name = '',
}: EnvoyDecisionLike['statuses'][number]['limit'] & object): EnvoyCurrentLimit {
  return {
    ...(requestsPerUnit === 0 ? {} : { requestsPerUnit }),
    unit: unit.toUpperCase() as EnvoyUnit,
    ...(name === '' ? {} : { name }),
  }
}
