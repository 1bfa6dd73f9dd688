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
        return answers.tellIn(JSON.stringify(envoyAnswer(decision)), told)
      }),
  }
}

const MS_PER_SECOND = 1000

/** The limit that headers describe: the denial with the longest wait, else the limit with the least left. */
export function toldBy(decision: DescriptorDecision, request: ValidEnvoyRequest, nowSeconds: number): DecisionLike {
  const allowed = decision.code === 'ok'
  const status = allowed ? decision.least : longestDenial(decision)
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
    retryAfterMs: waitMs(decision, request, resetAfterSeconds),
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

function longestDenial({ statuses }: DescriptorDecision): DescriptorStatus | undefined {
  let longest: DescriptorStatus | undefined
  for (const status of statuses) {
    if (status.code === 'ok') continue
    if (longest === undefined || status.resetAfterSeconds > longest.resetAfterSeconds) longest = status
  }
  return longest
}

/**
 * Milliseconds until it is worth asking again; `Infinity` when one of the limits that deny it is too small for the
 * hits.
 */
function waitMs({ code, statuses }: DescriptorDecision, request: ValidEnvoyRequest, seconds: number): number {
  if (code === 'ok') return 0
  const hits = Math.max(1, request.hitsAddend ?? 1)
  const neverFits = statuses.some(
    (status, index) =>
      status.code === 'over' &&
      status.limit !== undefined &&
      Math.max(1, request.descriptors[index]?.hitsAddend ?? hits) > status.limit.requestsPerUnit,
  )
  return neverFits ? Number.POSITIVE_INFINITY : seconds * MS_PER_SECOND
}
