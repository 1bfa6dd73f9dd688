import type { SessionState, SignInRequest } from '../admin/session-bodies.ts'
import { SESSION_PAGE, SESSION_STATE, SIGN_IN_REQUEST } from '../admin/session-bodies.ts'
import { ref } from '../schema/json-schema.ts'
import type { ProblemCode } from '../service/problem.ts'
import { operations, PAGE_PARAMETERS, pathPart, query } from './operation.ts'

const PROBLEMS_OF_ALL: readonly ProblemCode[] = ['SLUICE_HTTP_OVERLOADED']

const STATE = { schema: ref<SessionState>(SESSION_STATE), headers: ['Cache-Control'] } as const

/** Signing in to the dashboard. */
export const SESSION_OPERATIONS = operations('sessions', {
  signIn: {
    method: 'POST',
    path: '/auth/session',
    role: 'none',
    summary: 'Signs in',
    description:
      'Exchanges an API key for a session, whose cookie is HttpOnly and SameSite=Strict. The admin API takes the ' +
      'cookie in place of the key; changes also need the header X-CSRF-Token. The session that the browser had ' +
      'before ends.',
    body: ref<SignInRequest>(SIGN_IN_REQUEST),
    answers: { 200: { description: 'The session.', ...STATE } },
    problems: [
      'SLUICE_HTTP_UNAUTHORIZED',
      'SLUICE_HTTP_FORBIDDEN',
      'SLUICE_HTTP_TOO_MANY_FAILURES',
      'SLUICE_HTTP_CSRF',
      ...PROBLEMS_OF_ALL,
    ],
  },
  session: {
    method: 'GET',
    path: '/auth/session',
    role: 'none',
    summary: 'Tells who is signed in',
    description:
      'The session of the cookie, and the token for changes; without a session, `isSignedIn` is false. Counts as ' +
      'use of the session, as every request does. Streams do not: a page calls this while somebody is at it.',
    answers: { 200: { description: 'Who is signed in.', ...STATE } },
    problems: PROBLEMS_OF_ALL,
  },
  signOut: {
    method: 'DELETE',
    path: '/auth/session',
    role: 'none',
    summary: 'Signs out',
    description: 'The session ends here at once, and on all nodes within seconds. Without a session nothing happens.',
    answers: { 204: { description: 'No session.' } },
    problems: ['SLUICE_HTTP_CSRF', ...PROBLEMS_OF_ALL],
  },
  listSessions: {
    method: 'GET',
    path: '/admin/sessions',
    role: 'viewer',
    summary: 'Lists sessions',
    description: 'Sessions that go on, newest first: those of the key that asks, or, for admins, of all keys.',
    parameters: {
      ...PAGE_PARAMETERS,
      of: query('Whose: own, or all. Default: own.', { type: 'string', enum: ['own', 'all'], default: 'own' }),
    },
    answers: { 200: { description: 'The sessions.', schema: SESSION_PAGE.ref } },
    problems: PROBLEMS_OF_ALL,
  },
  endSession: {
    method: 'DELETE',
    path: '/admin/sessions/{id}',
    role: 'viewer',
    summary: 'Ends a session',
    description:
      'A session of the key that asks; for admins, of any key. It ends here at once, and on all nodes within seconds.',
    parameters: { id: pathPart('Which one.', { type: 'string', pattern: '^[A-Za-z0-9_-]{1,64}$' }) },
    answers: { 204: { description: 'It has ended.' } },
    problems: PROBLEMS_OF_ALL,
  },
})
