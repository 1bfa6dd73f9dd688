import type { Alert } from '@sluice/contract'
import type { Duration } from '@sluice/core'
import { isSluiceError } from '@sluice/core'
import { durationMs } from '@sluice/core/internal'
import type { AlertActor, Alerts, RedeliverOutcome } from '../../alerts/alerts.ts'
import type { Answer, OperationHandlers, RequestContext } from '../handler.ts'
import { pageOfList } from '../paging.ts'
import { invalidRequest, notFound, problemError } from '../problems.ts'
import { adminAnswer, pageAnswer } from './admin-requests.ts'
import type { AuditNotes } from './audit.ts'

/** Longer ones are taken for mistakes of unit: 90 days. */
const LONGEST_SILENCE_MS = 7_776_000_000

const NOTHING = /^0\s?(?:ms|s|m|h|d|w)$/

/** The operations on alerts. */
export type AlertOperation = 'listAlerts' | 'acknowledgeAlert' | 'silenceAlert' | 'listDeadLetters' | 'retryDeadLetter'

/** What somebody should look at, and what could not be told to anybody. */
export function alertHandlers(alerts: Alerts, notes: AuditNotes): OperationHandlers<AlertOperation> {
  return {
    listAlerts: async ({ parameters }) => pageAnswer(pageOfList(await alerts.list(), ({ id }) => id, parameters)),

    acknowledgeAlert: async (request) => {
      const { parameters, body } = request
      const alert = found(await alerts.acknowledge(parameters.id, actorOf(request, body.note)))
      await notes.note(request, { action: 'alert.acknowledge', target: targetOf(alert) })
      return adminAnswer(alert)
    },

    silenceAlert: async (request) => {
      const { parameters, body } = request
      const { duration, note } = body
      const order = { ...actorOf(request, note), durationMs: silenceMs(duration) }
      const alert = found(await alerts.silence(parameters.id, order))
      await notes.note(request, { action: 'alert.silence', target: `${targetOf(alert)} for ${duration}` })
      return adminAnswer(alert)
    },

    listDeadLetters: async ({ parameters }) =>
      pageAnswer(pageOfList(await alerts.deadLetters(), ({ id }) => id, parameters)),

    retryDeadLetter: async (request) => {
      const { id } = request.parameters
      const answer = retryAnswer(await alerts.redeliver(id))
      await notes.note(request, { action: 'dead-letter.retry', target: id })
      return answer
    },
  }
}

/** The alert, as the audit log names it. */
function targetOf({ rule, id }: Alert): string {
  return `${rule} ${id}`
}

function actorOf({ principal }: RequestContext, note: string | undefined): AlertActor {
  return { by: principal?.name ?? '', note }
}

function found<T>(alert: T | undefined): T {
  if (alert === undefined) throw notFound('alert of this id; GET /admin/alerts lists all there are')
  return alert
}

/** 0 ends a silence. */
function silenceMs(duration: string): number {
  if (NOTHING.test(duration)) return 0
  try {
    const silenceForMs = Math.ceil(durationMs(duration as Duration, 'duration'))
    if (silenceForMs <= LONGEST_SILENCE_MS) return silenceForMs
  } catch (error) {
    if (!isSluiceError(error, 'SLUICE_INVALID_DURATION')) throw error
  }
  throw invalidRequest({
    path: '/duration',
    received: JSON.stringify(duration),
    expected: 'a duration of at most 90 days, such as "1h"',
  })
}

function retryAnswer(outcome: RedeliverOutcome): Answer {
  if (outcome === 'queued') return { status: 202, headers: { 'Cache-Control': 'no-store' }, body: '' }
  if (outcome === 'unknown') throw notFound('message of this id that could not be delivered; it may have been since')
  const why = outcome === 'full' ? 'Too many messages are on their way' : 'The service is stopping'
  throw problemError('SLUICE_HTTP_OVERLOADED', `${why}; this one was left as it is. Try again later.`, {
    'Retry-After': '10',
  })
}
