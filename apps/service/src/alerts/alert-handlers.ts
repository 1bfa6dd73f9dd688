import type { AcknowledgeRequest, SilenceRequest } from '@sluice/contract'
import { adminAnswer, pageAnswer } from '../admin-api/admin-answer.ts'
import { pageOfList, pageRequestOf } from '../admin-api/list-page.ts'
import { invalidRequest, notFound, refusal, refusalAnswer } from '../admin-api/refusal.ts'
import type { Answer } from '../http/answer.ts'
import type { OperationHandler, OperationHandlers, OperationRequest } from '../http/operation-handler.ts'
import type { AlertActor, Alerts, RedeliverOutcome } from './alerts.ts'
import { durationMsOf } from './duration-text.ts'

/** Longer ones are taken for mistakes of unit: 90 days. */
const LONGEST_SILENCE_MS = 7_776_000_000

/** What somebody should look at, and what could not be told to anybody. */
export function alertHandlers(alerts: Alerts): OperationHandlers {
  const handlers: Readonly<Record<string, (request: OperationRequest) => Promise<Answer>>> = {
    'GET /admin/alerts': async ({ query }) =>
      pageAnswer(pageOfList(await alerts.list(), ({ id }) => id, pageRequestOf(query))),

    'POST /admin/alerts/{id}/acknowledge': async (request) => {
      const { note } = request.body as AcknowledgeRequest
      return adminAnswer(found(await alerts.acknowledge(idOf(request), actorOf(request, note))))
    },

    'POST /admin/alerts/{id}/silence': async (request) => {
      const { duration, note } = request.body as SilenceRequest
      const order = { ...actorOf(request, note), durationMs: silenceMs(duration) }
      return adminAnswer(found(await alerts.silence(idOf(request), order)))
    },

    'GET /admin/alerts/dead-letters': async ({ query }) =>
      pageAnswer(pageOfList(await alerts.deadLetters(), ({ id }) => id, pageRequestOf(query))),

    'POST /admin/alerts/dead-letters/{id}/retry': async (request) => retryAnswer(await alerts.redeliver(idOf(request))),
  }
  return Object.fromEntries(Object.entries(handlers).map(([name, handle]) => [name, answering(handle)]))
}

/** The handler, with what it refuses answered as a problem. */
function answering(handle: (request: OperationRequest) => Promise<Answer>): OperationHandler {
  return async (request) => {
    try {
      return await handle(request)
    } catch (error) {
      const answer = refusalAnswer(error)
      if (answer === undefined) throw error
      return answer
    }
  }
}

function idOf({ params }: OperationRequest): string {
  return params['id'] ?? ''
}

function actorOf({ principal }: OperationRequest, note: string | undefined): AlertActor {
  return { by: principal?.name ?? '', note }
}

function found<T>(alert: T | undefined): T {
  if (alert === undefined) throw notFound('alert of this id; GET /admin/alerts lists all there are')
  return alert
}

/** 0 ends a silence. */
function silenceMs(duration: string): number {
  const durationMs = durationMsOf(duration)
  if (durationMs !== undefined && durationMs <= LONGEST_SILENCE_MS) return durationMs
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
  throw refusal('SLUICE_HTTP_OVERLOADED', `${why}; this one was left as it is. Try again later.`, {
    'Retry-After': '10',
  })
}
