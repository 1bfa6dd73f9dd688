import type { AcknowledgeRequest, Alert, DeadLetter, SilenceRequest } from '../admin/alert-bodies.ts'
import { ACKNOWLEDGE_REQUEST, ALERT, ALERT_PAGE, DEAD_LETTER_PAGE, SILENCE_REQUEST } from '../admin/alert-bodies.ts'
import type { Page } from '../schema/value-schemas.ts'
import type { ProblemCode } from '../service/problem.ts'
import type { CallOf, OperationsOf, PageCall } from './operation.ts'
import { operations, PAGE_PARAMETERS, pathPart } from './operation.ts'

interface AlertParameters {
  readonly id: string
}

/** What goes in and out of the operations on alerts. */
export interface AlertCalls {
  readonly listAlerts: PageCall<{ readonly answer: Page<Alert> }>
  readonly acknowledgeAlert: CallOf<{
    readonly parameters: AlertParameters
    readonly body: AcknowledgeRequest
    readonly answer: Alert
  }>
  readonly silenceAlert: CallOf<{
    readonly parameters: AlertParameters
    readonly body: SilenceRequest
    readonly answer: Alert
  }>
  readonly listDeadLetters: PageCall<{ readonly answer: Page<DeadLetter> }>
  readonly retryDeadLetter: CallOf<{ readonly parameters: AlertParameters }>
}

const PROBLEMS_OF_ALL: readonly ProblemCode[] = ['SLUICE_HTTP_OVERLOADED']

const ID = { type: 'string', pattern: '^[A-Za-z0-9_.-]{1,100}$' } as const

const WHICH = { id: pathPart('Which one.', ID) }

/** What somebody should look at. */
export const ALERT_OPERATIONS: OperationsOf<AlertCalls> = operations<AlertCalls>('alerts', {
  listAlerts: {
    method: 'GET',
    path: '/admin/alerts',
    role: 'viewer',
    summary: 'Lists alerts',
    description: 'Those that hold first, then those that held, newest first.',
    parameters: PAGE_PARAMETERS,
    answers: { 200: { description: 'The alerts.', schema: ALERT_PAGE.ref } },
    problems: PROBLEMS_OF_ALL,
  },
  acknowledgeAlert: {
    method: 'POST',
    path: '/admin/alerts/{id}/acknowledge',
    role: 'admin',
    summary: 'Acknowledges an alert',
    description: 'The alert is not sent again while it goes on.',
    parameters: WHICH,
    body: ACKNOWLEDGE_REQUEST.ref,
    answers: { 200: { description: 'The alert.', schema: ALERT.ref } },
    problems: PROBLEMS_OF_ALL,
  },
  silenceAlert: {
    method: 'POST',
    path: '/admin/alerts/{id}/silence',
    role: 'admin',
    summary: 'Silences an alert',
    description: 'The alert is listed as before, and not sent to anybody until its time is over.',
    parameters: WHICH,
    body: SILENCE_REQUEST.ref,
    answers: { 200: { description: 'The alert.', schema: ALERT.ref } },
    problems: PROBLEMS_OF_ALL,
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
