import type { Session, SessionState } from '@sluice/contract'
import type { Authenticator, KnownApiKey } from '../../auth/authenticator.ts'
import { forbidden } from '../../auth/authenticator.ts'
import type { RequestOrigin } from '../../auth/request-origin.ts'
import type { SessionRecord } from '../../auth/session-list.ts'
import { IDLE_MS } from '../../auth/session-list.ts'
import type { FoundSession, Sessions } from '../../auth/sessions.ts'
import type { Answer, OperationHandlers, RequestContext } from '../handler.ts'
import { adminAnswer, pageAnswer, removedAnswer } from '../handler.ts'
import { pageOfList } from '../paging.ts'
import { notFound } from '../problems.ts'
import type { AuditNotes } from './audit.ts'

/** The operations on sessions. */
type SessionOperation = 'signIn' | 'session' | 'signOut' | 'listSessions' | 'endSession'

/** Dependencies of these handlers. */
export interface SessionHandlerParts {
  readonly sessions: Sessions
  readonly authenticator: Pick<Authenticator, 'authenticateKey'>
  readonly notes: Pick<AuditNotes, 'note'>
}

const NOBODY: SessionState = { isSignedIn: false }

/** Sign-in, sign-out, and the current session. */
export function sessionHandlers(parts: SessionHandlerParts): OperationHandlers<SessionOperation> {
  const { sessions, authenticator, notes } = parts

  const stateOf = ({ ticket, key }: FoundSession): SessionState => ({
    isSignedIn: true,
    session: shown({ ...ticket, lastSeenAt: ticket.activeAt, key }, ticket.id),
    csrfToken: sessions.tickets.csrfToken(ticket.id),
  })

  /** Ends the session of the cookie, if there is one. */
  const endOwn = async (request: RequestOrigin): Promise<FoundSession | undefined> => {
    const found = await sessions.find(request)
    if (found !== undefined) await sessions.end(found.ticket)
    return found
  }

  return {
    signIn: async (request) => {
      const rejection = sessions.rejectForeign(request)
      if (rejection !== undefined) return rejection
      const principal = authenticator.authenticateKey(request.body.apiKey, request, 'viewer')
      if ('status' in principal) return principal
      await endOwn(request)
      const begun = await sessions.begin(principal, request)
      const { id } = begun.ticket
      await notes.note({ principal, body: undefined }, { action: 'session.begin', target: id })
      return withCookie(adminAnswer(stateOf(begun)), begun.cookie)
    },

    session: async (request) => {
      const found = await sessions.find(request)
      if (found === undefined) return adminAnswer(NOBODY)
      return withCookie(adminAnswer(stateOf(found)), await sessions.renewal(found.ticket))
    },

    signOut: async (request) => {
      const found = await sessions.find(request)
      if (found === undefined) return removedAnswer()
      const rejection = sessions.rejectForeign(request) ?? sessions.rejectToken(request, found.ticket)
      if (rejection !== undefined) return rejection
      await sessions.end(found.ticket)
      const { id, name, role, tenant } = found.key
      const principal = { id, name, role, tenant }
      await notes.note({ principal, body: undefined }, { action: 'session.end', target: found.ticket.id })
      return withCookie(removedAnswer(), sessions.removal(found.ticket))
    },

    listSessions: async ({ parameters, principal }) => {
      if (parameters.of === 'all' && !seesAll(principal)) return forbidden(principal?.role ?? 'none', 'admin')
      const all = await sessions.list()
      const listed = parameters.of === 'all' ? all : all.filter(({ keyId }) => keyId === principal?.id)
      const page = pageOfList(listed, ({ id }) => id, parameters)
      return pageAnswer({ ...page, items: page.items.map((one) => shown(one, principal?.session?.id)) })
    },

    endSession: async (request) => {
      const { parameters, principal } = request
      const all = await sessions.list()
      const session = all.find(
        ({ id, keyId }) => id === parameters.id && (seesAll(principal) || keyId === principal?.id),
      )
      if (session === undefined) throw notFound('session of this id; GET /admin/sessions lists all there are')
      await sessions.end(session)
      await notes.note(request, { action: 'session.end', target: session.id })
      return removedAnswer()
    },
  }
}

/** Whether a caller may see and end the sessions of others. */
function seesAll(principal: RequestContext['principal']): boolean {
  return principal?.role === 'admin' && principal.tenant === undefined
}

function withCookie(answer: Answer, cookie: string | undefined): Answer {
  return cookie === undefined ? answer : { ...answer, headers: { ...answer.headers, 'Set-Cookie': cookie } }
}

type Listed = Pick<SessionRecord, 'id' | 'keyId' | 'createdAt' | 'expiresAt' | 'lastSeenAt'> &
  Partial<Pick<SessionRecord, 'address' | 'browser'>> & { readonly key: KnownApiKey }

function shown(session: Listed, currentId: string | undefined): Session {
  const { id, keyId, createdAt, expiresAt, lastSeenAt, address, browser, key } = session
  return {
    id,
    keyId,
    name: key.name,
    // Keys without a role cannot sign in.
    role: key.role as Session['role'],
    ...(key.tenant === undefined ? {} : { tenant: key.tenant }),
    createdAt,
    lastSeenAt,
    idleExpiresAt: Math.min(expiresAt, lastSeenAt + IDLE_MS),
    expiresAt,
    isCurrent: id === currentId,
    ...(address === undefined ? {} : { address }),
    ...(browser === undefined || browser === '' ? {} : { browser }),
  }
}
