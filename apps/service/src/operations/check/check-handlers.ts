import type { ConfigFollower } from '@sluice/config-store'
import { Reservations } from '../../reservations/reservations.ts'
import type { ServiceContext } from '../../service-context.ts'
import type { Settings } from '../../settings/settings.ts'
import type { OperationHandlers } from '../handler.ts'
import { decisionAnswers, decisionHandlers, onceRulesAreKnown, requestsFrom } from './check.ts'
import { envoyHandlers } from './envoy-check.ts'
import { idHandlers } from './ids.ts'
import { reportHandlers } from './reports.ts'
import { reservationHandlers } from './reservations.ts'
import { slotHandlers } from './slots.ts'

/** What the check API works with. */
export interface CheckContext
  extends Pick<
    ServiceContext,
    'clock' | 'random' | 'store' | 'engine' | 'secret' | 'nextId' | 'threads' | 'decisions'
  > {
  readonly settings: Pick<Settings, 'headers' | 'retryJitter' | 'region'>
  readonly follower: Pick<ConfigFollower, 'hasRules'>
}

/** The operations of the check API. */
export type CheckOperation =
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
  | 'ids'

/**
 * The check API: who may go on, and what it costs them. On a store that answers at once, so does every handler, but an
 * `acquire` that waits. While no rules are known, nothing is decided: every operation but `ids` answers 503.
 */
export function checkHandlers(context: CheckContext): OperationHandlers<CheckOperation> {
  const answers = decisionAnswers(context)
  const reservations = new Reservations(context)
  const parts = { ...context, answers, reservations, requestOf: requestsFrom(context.settings.region) }
  return {
    ...onceRulesAreKnown(context.follower, {
      ...decisionHandlers(parts),
      ...reservationHandlers(parts),
      ...slotHandlers(parts),
      ...reportHandlers(parts),
      ...envoyHandlers(parts),
    }),
    ...idHandlers(context),
  }
}
