import type { ConfigFollower } from '@sluice/config-store'
import type { ValidCheckRequest } from '@sluice/contract'
import { parseBatchRequest, parseCheckRequest } from '@sluice/contract'
import type { PolicyDecision, PolicyRequest } from '@sluice/core/policy'
import { Reservations } from '../../reservations/reservations.ts'
import type { ServiceContext } from '../../service-context.ts'
import type { Settings } from '../../settings.ts'
import type { Answer, OperationHandler, OperationHandlers } from '../handler.ts'
import { thenMaybe } from '../handler.ts'
import { invalidBody, whenReady, withStoreProblems } from '../problems.ts'
import { DecisionAnswers, policyRequestOf } from './decision-answers.ts'
import { envoyHandlers } from './envoy.ts'
import { idHandlers } from './ids.ts'
import { reportHandlers } from './reports.ts'
import { reservationHandlers } from './reservations.ts'
import { slotHandlers } from './slots.ts'

/** What the check API works with. */
export interface CheckContext
  extends Pick<ServiceContext, 'clock' | 'random' | 'store' | 'engine' | 'secret' | 'nextId' | 'threads'> {
  readonly settings: Pick<Settings, 'headers' | 'retryJitter' | 'region'>
  readonly follower: Pick<ConfigFollower, 'hasRules'>
}

/**
 * The check API: who may go on, and what it costs them. On a store that answers at once, so does every handler, but an `acquire`
 * that waits. What cannot be understood is answered with a problem, and counts nothing. While no rules are known, nothing is decided:
 * every operation but `ids` answers 503.
 */
export function checkHandlers(context: CheckContext): OperationHandlers {
  const { engine, clock, nextId, random, settings } = context
  const answers = new DecisionAnswers({
    clock,
    nextId,
    random,
    profile: settings.headers,
    retryJitter: settings.retryJitter,
  })
  const reservations = new Reservations(context)
  const requestOf = (request: ValidCheckRequest): PolicyRequest => policyRequestOf(request, settings.region)
  const parts = { ...context, answers, reservations, requestOf }
  const tell = (decision: PolicyDecision): Answer => answers.tell(decision)

  const check: OperationHandler = ({ body }) => {
    const parsed = parseCheckRequest(body)
    if (!parsed.ok) return invalidBody(parsed)
    const decided = engine.check(requestOf(parsed.request))
    return decided instanceof Promise ? decided.then(tell) : tell(decided)
  }
  const peek: OperationHandler = ({ body }) => {
    const parsed = parseCheckRequest(body)
    if (!parsed.ok) return invalidBody(parsed)
    return thenMaybe(engine.peek(requestOf(parsed.request)), tell)
  }
  const batch: OperationHandler = ({ body }) => {
    const parsed = parseBatchRequest(body)
    if (!parsed.ok) return invalidBody(parsed)
    // All are asked before the first answer is waited for, so that they travel to a remote store together.
    const decided = parsed.requests.map((request) => engine.check(requestOf(request)))
    if (decided.some((decision) => decision instanceof Promise)) {
      return Promise.all(decided).then((decisions) => answers.tellAll(decisions))
    }
    return answers.tellAll(decided as readonly PolicyDecision[])
  }

  const deciding: OperationHandlers = {
    'POST /internal/ratelimit/check': check,
    'POST /internal/ratelimit/check/batch': batch,
    'POST /internal/ratelimit/batch': batch,
    'POST /internal/ratelimit/peek': peek,
    ...reservationHandlers(parts),
    ...slotHandlers(parts),
    ...reportHandlers(parts),
    ...envoyHandlers(parts),
  }
  const { follower } = context
  const gated = Object.entries(deciding).map(([name, handle]) => [name, whenReady(follower, handle)] as const)
  const handlers: OperationHandlers = { ...Object.fromEntries(gated), ...idHandlers(context) }
  return Object.fromEntries(Object.entries(handlers).map(([name, handle]) => [name, withStoreProblems(handle)]))
}
