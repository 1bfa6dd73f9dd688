import type { DecisionLike, ValidEnvoyRequest } from '@sluice/contract'
import { envoyAnswer } from '@sluice/contract'
import { MICROS_PER_SECOND } from '@sluice/core/internal'
import type { DescriptorDecision, DescriptorStatus } from '@sluice/core/policy'
import type { ServiceContext } from '../../service-context.ts'
import type { Answer, OperationHandlers } from '../handler.ts'
import { thenMaybe } from '../handler.ts'
import type { DecisionAnswers } from './check.ts'

/** What requests of the Envoy rate limit protocol are decided and answered with. */
export interface EnvoyParts extends Pick<ServiceContext, 'engine' | 'clock'> {
  readonly answers: DecisionAnswers
}

/** `POST /json` as envoyproxy/ratelimit has it: decides by the domains of the enforced rule set. */
export function envoyHandlers({ engine, clock, answers }: EnvoyParts): OperationHandlers<'shouldRateLimit'> {
  return {
    shouldRateLimit: ({ body: { request } }) =>
      thenMaybe(engine.decideDescriptors(request), (decision): Answer => {
        const told = toldBy(decision, request, clock.nowMicros() / MICROS_PER_SECOND)
        return answers.tellIn(JSON.stringify(envoyAnswer(decision, request)), told)
      }),
  }
}

const MS_PER_SECOND = 1000

/** The limit that headers describe: what a denied call waits for, else the limit with the least left. */
export function toldBy(decision: DescriptorDecision, request: ValidEnvoyRequest, nowSeconds: number): DecisionLike {
  const allowed = decision.code === 'ok'
  const denial = allowed ? undefined : decisiveDenial(decision, request)
  const status = denial?.status ?? decision.least
  if (status?.limit === undefined) return { ...UNLIMITED, allowed }
  const { limit, remaining, resetAfterSeconds } = status
  return {
    allowed,
    reason: allowed ? 'allowed' : 'limit',
    rule: limit.name ?? request.domain,
    limit: limit.requestsPerUnit,
    remaining,
    // Windows end with a second, and what is left of them was rounded up.
    resetAt: remaining === null ? 0 : (Math.floor(nowSeconds) + resetAfterSeconds) * MS_PER_SECOND,
    retryAfterMs: (denial?.waitSeconds ?? 0) * MS_PER_SECOND,
  }
}

const UNLIMITED: Omit<DecisionLike, 'allowed'> = {
  reason: 'unlimited',
  rule: '',
  limit: Number.POSITIVE_INFINITY,
  remaining: Number.POSITIVE_INFINITY,
  resetAt: 0,
  retryAfterMs: 0,
}

/** A limit that denies, and how long it will. */
interface Denial {
  readonly status: DescriptorStatus
  /** `Infinity` when it is too small for the hits. */
  readonly waitSeconds: number
}

/** What a denied call waits for: all limits that deny it; of those in quota mode, one is enough. */
function decisiveDenial({ statuses }: DescriptorDecision, request: ValidEnvoyRequest): Denial | undefined {
  let longest: Denial | undefined
  let shortestQuota: Denial | undefined
  for (const [index, status] of statuses.entries()) {
    if (!status.denies) continue
    const hits = request.descriptors[index]?.hitsAddend ?? request.hitsAddend ?? 1
    const fits = status.limit === undefined || Math.max(1, hits) <= status.limit.requestsPerUnit
    const denial = { status, waitSeconds: fits ? status.resetAfterSeconds : Number.POSITIVE_INFINITY }
    if (status.rule?.quota !== true) {
      if (longest === undefined || denial.waitSeconds > longest.waitSeconds) longest = denial
    } else if (shortestQuota === undefined || denial.waitSeconds < shortestQuota.waitSeconds) shortestQuota = denial
  }
  if (longest === undefined || shortestQuota === undefined) return longest ?? shortestQuota
  return longest.waitSeconds >= shortestQuota.waitSeconds ? longest : shortestQuota
}
