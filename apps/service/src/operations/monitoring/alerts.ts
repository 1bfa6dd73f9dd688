import type { Alert } from '@sluice/contract'
import { isSluiceError } from '@sluice/core'
import { durationMs } from '@sluice/core/internal'
import type { AlertActor } from '../../alerts/alert-record.ts'
import type { AlertMessages } from '../../alerts/process-alerts.ts'
import type { RedeliverOutcome } from '../../alerts/webhook-channel.ts'
import type { ClusterMessages } from '../../observability/cluster/cluster-view.ts'
import type { ThreadGroup } from '../../thread-messages/message-bus.ts'
import type { AuditNotes } from '../admin/audit.ts'
import type { Answer, OperationHandlers, RequestContext } from '../handler.ts'
import { adminAnswer, pageAnswer } from '../handler.ts'
import { pageOfList } from '../paging.ts'
import { invalidRequest, notFound, problemError } from '../problems.ts'
import { figuresOf, nodeOf } from './feed-readers.ts'

/** Longer ones are taken for mistakes of unit: 90 days. */
const LONGEST_SILENCE_MS = 7_776_000_000

const NOTHING = /^0\s?(?:ms|s|m|h|d|w)$/

/** The operations on alerts. */
type AlertOperation = 'listAlerts' | 'acknowledgeAlert' | 'silenceAlert' | 'listDeadLetters' | 'retryDeadLetter'

/** What somebody should look at, and what could not be told to anybody. The main thread has both. */
export function alertHandlers(
  threads: Pick<ThreadGroup<AlertMessages & ClusterMessages>, 'callMain'>,
  notes: AuditNotes,
): OperationHandlers<AlertOperation> {
  return {
    listAlerts: async ({ parameters }) =>
      pageAnswer(pageOfList(await alertsOf(threads, parameters.node), ({ id }) => id, parameters)),

    acknowledgeAlert: async (request) => {
      const { parameters, body } = request
      const actor = actorOf(request, body.note)
      const own = await threads.callMain('alerts.acknowledge', parameters.id, actor)
      const alert = own ?? (await rejectUnknown(threads, parameters.id))
      await notes.note(request, { action: 'alert.acknowledge', target: targetOf(alert) })
      return adminAnswer(alert)
    },

    silenceAlert: async (request) => {
      const { parameters, body } = request
      const { duration, note } = body
      const order = { ...actorOf(request, note), durationMs: silenceMs(duration) }
      const own = await threads.callMain('alerts.silence', parameters.id, order)
      const alert = own ?? (await rejectUnknown(threads, parameters.id))
      await notes.note(request, { action: 'alert.silence', target: `${targetOf(alert)} for ${duration}` })
      return adminAnswer(alert)
    },

    listDeadLetters: async ({ parameters }) =>
      pageAnswer(pageOfList(await threads.callMain('alerts.deadLetters'), ({ id }) => id, parameters)),

    retryDeadLetter: async (request) => {
      const { id } = request.parameters
      const answer = retryAnswer(await threads.callMain('alerts.redeliver', id))
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

/**
 * All alerts, firing first; or only those of one node. Nodes share their alerts. Those that only another node knows,
 * because it cannot reach what nodes share, are in its report.
 */
async function alertsOf(
  threads: Pick<ThreadGroup<AlertMessages & ClusterMessages>, 'callMain'>,
  node: string | undefined,
): Promise<readonly Alert[]> {
  const { alerts } = await figuresOf(threads, node)
  if (node !== undefined) {
    const isSelf = (await nodeOf(threads, node))?.isSelf === true
    return isSelf ? await threads.callMain('alerts.list', 'own') : alerts
  }
  const shared = await threads.callMain('alerts.list')
  const known = new Set(shared.map(({ id }) => id))
  const firing = [...shared.filter(({ state }) => state === 'firing'), ...alerts.filter(({ id }) => !known.has(id))]
  return [
    ...firing.toSorted((one, other) => other.firedAt - one.firedAt),
    ...shared.filter(({ state }) => state !== 'firing'),
  ]
}

/** Says where the alert is, if another node has it. */
async function rejectUnknown(threads: Pick<ThreadGroup<ClusterMessages>, 'callMain'>, id: string): Promise<never> {
  const { alerts } = await figuresOf(threads, undefined)
  const other = alerts.find((alert) => alert.id === id)
  if (other === undefined) throw notFound('alert of this id; GET /admin/alerts lists all there are')
  const why = `Only the node ${other.node} knows this alert: it cannot reach what nodes share alerts through.`
  throw problemError('SLUICE_HTTP_CONFLICT', `${why} Try again when it can, or send the request to that node.`)
}

/** 0 ends a silence. */
function silenceMs(duration: string): number {
  if (NOTHING.test(duration)) return 0
  try {
    const silenceForMs = Math.ceil(durationMs(duration, 'duration'))
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
