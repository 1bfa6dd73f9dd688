import type { ApiKeyRole } from '@sluice/config-store'
import { mayDo } from '@sluice/contract'
import type { Clock } from '@sluice/core'
import { MICROS_PER_MS } from '@sluice/core/internal'
import { addressNetwork } from '../address-network.ts'
import type { Answer, Principal } from '../operations/handler.ts'
import { problemAnswer } from '../operations/problems.ts'
import type { ThreadGroup } from '../thread-messages/message-bus.ts'
import type { ApiKeyCache, KnownApiKey } from './authenticator.ts'
import { forbidden } from './authenticator.ts'
import type { ClientAddresses, RequestOrigin } from './request-origin.ts'
import type { SessionTicket } from './session-cookie.ts'
import { cookieIn, SessionTickets, sessionCookie } from './session-cookie.ts'
import type { EndedSessions, SessionRecord } from './session-list.ts'
import { IDLE_MS, isEnded, LONGEST_MS } from './session-list.ts'
import type { SessionMessages } from './session-registry.ts'

/** Options of {@link Sessions}. */
export interface SessionsParts {
  readonly keys: ApiKeyCache
  readonly clock: Clock
  /** Signs tickets; read at each use. */
  readonly secret: Uint8Array
  readonly threads: ThreadGroup<SessionMessages>
  readonly addresses: ClientAddresses
  /** Path of the cookie if no proxy sends one. */
  readonly basePath: string
  /** Creates unguessable names. */
  readonly newId: () => string
}

/** An active session. */
export interface FoundSession {
  readonly ticket: SessionTicket
  readonly key: KnownApiKey
}

/** Age after which a ticket is renewed. */
const RENEW_AFTER_MS = 60_000

/** Tolerated clock skew between nodes. */
const MOST_SKEW_MS = 5 * 60_000

const LONGEST_BROWSER = 120

/** Sessions of browsers in one thread. */
export class Sessions {
  readonly tickets: SessionTickets
  readonly #parts: SessionsParts
  #ended: Promise<EndedSessions> | EndedSessions | undefined

  constructor(parts: SessionsParts) {
    this.#parts = parts
    this.tickets = new SessionTickets(parts.secret)
    parts.threads.handle('sessions.update', (ended) => {
      this.#ended = ended
    })
  }

  /** Whether a request has a session cookie, valid or not. */
  hasCookie({ headers }: RequestOrigin): boolean {
    return cookieIn(headers.cookie, this.tickets.cookieName) !== undefined
  }

  /** Begins a session for an authenticated key. */
  async begin(principal: Principal, request: RequestOrigin): Promise<FoundSession & { readonly cookie: string }> {
    const { keys, threads, newId, addresses, basePath } = this.#parts
    const nowMs = this.#nowMs()
    const target = addresses.target(request)
    const ticket: SessionTicket = {
      id: newId(),
      keyId: principal.id,
      role: principal.role,
      createdAt: nowMs,
      expiresAt: nowMs + LONGEST_MS,
      activeAt: nowMs,
      // The browser reports https itself, even behind a proxy that does not.
      isSecure: target.isSecure || request.headers.origin?.startsWith('https://') === true,
      path: target.prefix ?? basePath,
    }
    await threads.callMain('sessions.begin', recordOf(ticket, request, addressNetwork(addresses.of(request))))
    return { ticket, key: keys.find(principal.id)!, cookie: this.#cookieOf(ticket) }
  }

  /** The session of a request; undefined without an active one. */
  async find({ headers }: RequestOrigin): Promise<FoundSession | undefined> {
    const text = cookieIn(headers.cookie, this.tickets.cookieName)
    const ticket = text === undefined ? undefined : this.tickets.read(text)
    if (ticket === undefined) return undefined
    await this.#loadEnded()
    const key = this.#keyOf(ticket)
    const idleMs = this.#nowMs() - ticket.activeAt
    return key === undefined || idleMs >= IDLE_MS || idleMs < -MOST_SKEW_MS ? undefined : { ticket, key }
  }

  /**
   * The caller, if its session is active and the role suffices; otherwise a problem. `isChange`: whether it must prove
   * that the request comes from the page itself.
   */
  async authenticate(
    request: RequestOrigin,
    { role, isChange }: { readonly role: ApiKeyRole; readonly isChange: boolean },
  ): Promise<Principal | Answer> {
    const found = await this.find(request)
    if (found === undefined) return NO_SESSION
    const { ticket, key } = found
    const rejection = isChange ? (this.rejectForeign(request) ?? this.rejectToken(request, ticket)) : undefined
    if (rejection !== undefined) return rejection
    if (!mayDo(key.role, role)) return forbidden(key.role, role)
    const { id, name, tenant } = key
    const session = { id: ticket.id, renewal: await this.#renew(ticket), goesOn: () => this.#goesOn(ticket) }
    return { id, name, role: key.role, tenant, session }
  }

  /** Ends a session here at once, and on all nodes soon. */
  async end(session: Pick<SessionRecord, 'id' | 'keyId' | 'createdAt' | 'expiresAt'>): Promise<void> {
    await this.#parts.threads.callMain('sessions.end', session)
  }

  /** The header that removes the cookie of a session. */
  removal(ticket: Pick<SessionTicket, 'isSecure' | 'path'>): string {
    return sessionCookie(this.tickets.cookieName, ticket)
  }

  /** All active sessions, newest first, with their keys. */
  async list(): Promise<readonly (SessionRecord & { readonly key: KnownApiKey })[]> {
    const { threads, keys } = this.#parts
    const sessions = await threads.callMain('sessions.list')
    return sessions
      .flatMap((session) => {
        const key = keys.find(session.keyId)
        return key !== undefined && isValid(key, this.#nowMs()) ? [{ ...session, key }] : []
      })
      .toSorted((one, other) => other.createdAt - one.createdAt)
  }

  /** The renewed cookie of a ticket that was just used; undefined while it is recent enough. */
  renewal(ticket: SessionTicket): Promise<string | undefined> {
    return this.#renew(ticket)
  }

  /** The answer to a request that may come from another site. */
  rejectForeign(request: RequestOrigin): Answer | undefined {
    const { headers } = request
    const site = headers['sec-fetch-site']
    if (site !== undefined) return site === 'same-origin' || site === 'none' ? undefined : FOREIGN
    const { origin } = headers
    // Not a browser, or one that sends neither: then only the token decides.
    if (origin === undefined) return undefined
    const host = URL.parse(origin)?.host
    const own = this.#parts.addresses.target(request).host
    return host !== undefined && (host === own || host === headers.host) ? undefined : FOREIGN
  }

  /** The answer to a change without the CSRF token of its session. */
  rejectToken({ headers }: RequestOrigin, { id }: SessionTicket): Answer | undefined {
    const given = headers['x-csrf-token']
    return typeof given === 'string' && this.tickets.hasCsrfToken(id, given) ? undefined : NO_TOKEN
  }

  async #renew(ticket: SessionTicket): Promise<string | undefined> {
    const nowMs = this.#nowMs()
    if (nowMs - ticket.activeAt < RENEW_AFTER_MS) return undefined
    await this.#parts.threads.callMain('sessions.use', ticket.id, nowMs)
    return this.#cookieOf({ ...ticket, activeAt: nowMs })
  }

  #cookieOf(ticket: SessionTicket): string {
    const maxAgeSeconds = Math.ceil(Math.min(IDLE_MS, ticket.expiresAt - this.#nowMs()) / 1000)
    return sessionCookie(this.tickets.cookieName, ticket, { text: this.tickets.write(ticket), maxAgeSeconds })
  }

  /** Idle time does not count: a stream has an attentive reader without requests. */
  #goesOn(ticket: SessionTicket): boolean {
    return this.#keyOf(ticket) !== undefined
  }

  /** The key of an active session; undefined if the session or its key has ended. */
  #keyOf(ticket: SessionTicket): KnownApiKey | undefined {
    const nowMs = this.#nowMs()
    const ended = this.#ended
    if (ticket.expiresAt <= nowMs || ended === undefined || ended instanceof Promise) return undefined
    if (isEnded(ended, ticket)) return undefined
    const key = this.#parts.keys.find(ticket.keyId)
    return key !== undefined && key.role === ticket.role && isValid(key, nowMs) ? key : undefined
  }

  async #loadEnded(): Promise<void> {
    if (this.#ended !== undefined && !(this.#ended instanceof Promise)) return
    const asked = this.#ended ?? this.#parts.threads.callMain('sessions.ended')
    this.#ended = asked
    try {
      const ended = await asked
      if (this.#ended === asked) this.#ended = ended
    } catch (error) {
      if (this.#ended === asked) this.#ended = undefined
      throw error
    }
  }

  #nowMs(): number {
    return Math.floor(this.#parts.clock.nowMicros() / MICROS_PER_MS)
  }
}

function isValid({ revokedAt, expiresAt }: KnownApiKey, nowMs: number): boolean {
  return revokedAt === undefined && (expiresAt === undefined || expiresAt > nowMs)
}

function recordOf(
  { id, keyId, createdAt, expiresAt }: SessionTicket,
  { headers }: RequestOrigin,
  address: string,
): SessionRecord {
  const browser = (headers['user-agent'] ?? '').replaceAll(/[^ -~]/g, '?').slice(0, LONGEST_BROWSER)
  return { id, keyId, createdAt, expiresAt, lastSeenAt: createdAt, address, browser }
}

const NO_STORE = { 'Cache-Control': 'no-store' }

const NO_SESSION = problemAnswer('SLUICE_HTTP_UNAUTHORIZED', {
  detail: 'The session has ended. Sign in again.',
  headers: { 'WWW-Authenticate': 'Bearer realm="sluice"', ...NO_STORE },
})

const FOREIGN = problemAnswer('SLUICE_HTTP_CSRF', {
  detail:
    'The request comes from a page of another origin than its host. Behind a proxy that changes Host, add it to ' +
    '--trusted-proxies and let it send X-Forwarded-Host.',
  headers: NO_STORE,
})

const NO_TOKEN = problemAnswer('SLUICE_HTTP_CSRF', {
  detail: 'Send the csrfToken of GET /auth/session in the header X-CSRF-Token.',
  headers: NO_STORE,
})
