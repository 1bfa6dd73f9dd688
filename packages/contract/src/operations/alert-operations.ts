import type { AcknowledgeRequest, Alert, SilenceRequest } from '../admin/alert-bodies.ts'
import { ACKNOWLEDGE_REQUEST, ALERT, ALERT_PAGE, DEAD_LETTER_PAGE, SILENCE_REQUEST } from '../admin/alert-bodies.ts'
import { ref } from '../schema/json-schema.ts'
import type { ProblemCode } from '../service/problem.ts'
import { NODE_PARAMETER, operations, PAGE_PARAMETERS, pathPart } from './operation.ts'

const PROBLEMS_OF_ALL: readonly ProblemCode[] = ['SLUICE_HTTP_OVERLOADED']

const ID = { type: 'string', pattern: '^[A-Za-z0-9_.-]{1,100}$' } as const

const WHICH = { id: pathPart('Which one.', ID) }

/** What somebody should look at. */
export const ALERT_OPERATIONS = operations('alerts', {
  listAlerts: {
    method: 'GET',
    path: '/admin/alerts',
    role: 'viewer',
    summary: 'Lists alerts',
    description:
      'Those of all nodes: first those that hold, then those that held, newest first. Any node lists, acknowledges ' +
      'and silences them; other nodes show the change within 5 seconds.',
    parameters: { ...PAGE_PARAMETERS, ...NODE_PARAMETER },
    answers: { 200: { description: 'The alerts.', schema: ALERT_PAGE.ref } },
    problems: ['SLUICE_HTTP_NOT_FOUND', ...PROBLEMS_OF_ALL],
  },
  acknowledgeAlert: {
    method: 'POST',
    path: '/admin/alerts/{id}/acknowledge',
    role: 'admin',
    summary: 'Acknowledges an alert',
    description: 'The alert is not sent again while it goes on. Applies to all nodes.',
    parameters: WHICH,
    body: ref<AcknowledgeRequest>(ACKNOWLEDGE_REQUEST),
    answers: { 200: { description: 'The alert.', schema: ref<Alert>(ALERT) } },
    problems: ['SLUICE_HTTP_CONFLICT', ...PROBLEMS_OF_ALL],
  },
  silenceAlert: {
    method: 'POST',
    path: '/admin/alerts/{id}/silence',
    role: 'admin',
    summary: 'Silences an alert',
    description:
      'The alert is listed as before, and not sent to anybody until its time is over. Later alerts of the same rule ' +
      'and scope are silenced too. Applies to all nodes.',
    parameters: WHICH,
    body: ref<SilenceRequest>(SILENCE_REQUEST),
    answers: { 200: { description: 'The alert.', schema: ref<Alert>(ALERT) } },
    problems: ['SLUICE_HTTP_CONFLICT', ...PROBLEMS_OF_ALL],
  },
  listDeadLetters: {
    method: 'GET',
    path: '/admin/alerts/dead-letters',
    role: 'viewer',
    summary: 'Lists undelivered messages',
    description: 'Messages about alerts whose every attempt failed, newest first.',
    parameters: PAGE_PARAMETERS,
    answers: { 200: { description: 'The messages.', schema: DEAD_LETTER_PAGE.ref } },
    problems: PROBLEMS_OF_ALL,
  },
  retryDeadLetter: {
    method: 'POST',
    path: '/admin/alerts/dead-letters/{id}/retry',
    role: 'admin',
    summary: 'Retries an undelivered message',
    description: 'The message is sent with the same idempotency key as before; whether it arrives is seen later.',
    parameters: WHICH,
    answers: { 202: { description: 'It will be tried.' } },
    problems: PROBLEMS_OF_ALL,
  },
})
