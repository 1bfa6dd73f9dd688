import type { ConfigFollower } from '@sluice/config-store'
import type { ValidCheckRequest } from '@sluice/contract'
import type { PolicyDecision, PolicyRequest } from '@sluice/core/policy'
import { Reservations } from '../../reservations/reservations.ts'
import type { ServiceContext } from '../../service-context.ts'
import type { Settings } from '../../settings.ts'
import type { Answer, AnyHandler, OperationHandlers } from '../handler.ts'
import { thenMaybe } from '../handler.ts'
import { problemAnswer } from '../problems.ts'
import { decisionAnswers, policyRequestOf } from './decision-answers.ts'
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

/** The operations that decide, or correct what was decided. */
type DecidingOperation =
  | 'check'
  | 'checkBatch'
  | 'checkBatchAlias'
  | 'peek'
  | 'reserve'
  | 'settle'
  | 'release'
  | 'acquire'
  | 'heartbeat'
  | 'report'
  | 'shouldRateLimit'

type CheckHandlers = OperationHandlers<DecidingOperation>

/** The operations of the check API. */
export type CheckOperation = DecidingOperation | 'ids'

/**
 * The check API: who may go on, and what it costs them. On a store that answers at once, so does every handler, but an `acquire`
 * that waits. While no rules are known, nothing is decided:
 * every operation but `ids` answers 503.
 */
export function checkHandlers(context: CheckContext): OperationHandlers<CheckOperation> {
  const { engine, settings } = context
  const answers = decisionAnswers(context)
  const reservations = new Reservations(context)
  const requestOf = (request: ValidCheckRequest): PolicyRequest => policyRequestOf(request, settings.region)
  const parts = { ...context, answers, reservations, requestOf }
  const tell = (decision: PolicyDecision): Answer => answers.tell(decision)

  const batch: CheckHandlers['checkBatch'] = ({ body }) => {
    // All are asked before the first answer is waited for, so that they travel to a remote store together.
    const decided = body.requests.map((request) => engine.check(requestOf(request)))
    if (decided.some((decision) => decision instanceof Promise)) {
      return Promise.all(decided).then((decisions) => answers.tellAll(decisions))
    }
    return answers.tellAll(decided as readonly PolicyDecision[])
  }
  const deciding: CheckHandlers = {
    check: ({ body }) => {
      const decided = engine.check(requestOf(body.request))
      return decided instanceof Promise ? decided.then(tell) : tell(decided)
    },
    checkBatch: batch,
    checkBatchAlias: batch,
    peek: ({ body }) => thenMaybe(engine.peek(requestOf(body.request)), tell),
    ...reservationHandlers(parts),
    ...slotHandlers(parts),
    ...reportHandlers(parts),
    ...envoyHandlers(parts),
  }
  return { ...onceRulesAreKnown(context.follower, deciding), ...idHandlers(context) }
}

/** The answer while no rules are known. */
export const NO_RULES: Answer = problemAnswer('SLUICE_HTTP_NOT_READY', {
  detail: 'This node has no rules yet. Nothing was counted. Ask another node, or try again; GET /readyz says why.',
  headers: { 'Retry-After': '1' },
})

/**
 * The handlers, which are not called while no rules are known: the answer is 503 then. Without rules every call would be unlimited,
 * and no failure mode is known either, because that is part of a rule. A caller that is answered 503 applies its own failure mode.
 */
function onceRulesAreKnown(follower: CheckContext['follower'], handlers: CheckHandlers): CheckHandlers {
  const gated = Object.entries<AnyHandler>(handlers as Readonly<Record<string, AnyHandler>>).map(
    ([id, handle]): [string, AnyHandler] => [id, (request) => (follower.hasRules ? handle(request) : NO_RULES)],
  )
  return Object.fromEntries(gated) as unknown as CheckHandlers
}
