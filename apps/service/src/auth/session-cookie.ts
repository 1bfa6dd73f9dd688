import { createHmac, timingSafeEqual } from 'node:crypto'
import type { ApiKeyRole } from '@sluice/config-store'

/** Content of a session cookie. Times are in milliseconds since 1970. */
export interface SessionTicket {
  readonly id: string
  /** `slk_<id>` of the API key that it was signed in with. */
  readonly keyId: string
  readonly role: ApiKeyRole
  readonly createdAt: number
  readonly expiresAt: number
  /** When this ticket was written: at sign-in, and again while the session is used. */
  readonly activeAt: number
  /** Attributes of the cookie, needed to renew and remove it. */
  readonly isSecure: boolean
  readonly path: string
}

/** The ticket as compact JSON. */
type Written = readonly [
  id: string,
  keyId: string,
  role: ApiKeyRole,
  createdAt: number,
  expiresAt: number,
  activeAt: number,
  isSecure: 0 | 1,
  path: string,
]

/** Prefix of every ticket: its kind and format version. Signed as well. */
const FORM = 's1'

const TICKET = /^s1\.([\w-]{1,1000})\.([\w-]{43})$/

/** Size of a CSRF token in bytes. */
const CSRF_BYTES = 16

/**
 * Signs and verifies session tickets. Each purpose has a separate key, so that neither a ticket nor a CSRF token can be
 * used as something else signed with the same secret.
 */
export class SessionTickets {
  readonly #secret: Uint8Array

  /** @param secret - read at each use, because its bytes may change */
  constructor(secret: Uint8Array) {
    this.#secret = secret
  }

  /** Browsers send cookies to all ports of a host, so the name distinguishes deployments on one host. */
  get cookieName(): string {
    return `sluice_session_${this.#mac('cookie', '').subarray(0, 4).toString('hex')}`
  }

  write(ticket: SessionTicket): string {
    const { id, keyId, role, createdAt, expiresAt, activeAt, isSecure, path } = ticket
    const written: Written = [id, keyId, role, createdAt, expiresAt, activeAt, isSecure ? 1 : 0, path]
    const signed = `${FORM}.${Buffer.from(JSON.stringify(written)).toString('base64url')}`
    return `${signed}.${this.#mac('ticket', signed).toString('base64url')}`
  }

  /** The ticket in a cookie; undefined unless it was signed with this secret and is unchanged. */
  read(text: string): SessionTicket | undefined {
    const [, content, mac] = TICKET.exec(text) ?? []
    if (content === undefined || mac === undefined) return undefined
    const expected = this.#mac('ticket', `${FORM}.${content}`).toString('base64url')
    // In constant time, so that the duration reveals nothing about the MAC.
    if (!timingSafeEqual(Buffer.from(mac), Buffer.from(expected))) return undefined
    const [id, keyId, role, createdAt, expiresAt, activeAt, isSecure, path] = JSON.parse(
      Buffer.from(content, 'base64url').toString(),
    ) as Written
    return { id, keyId, role, createdAt, expiresAt, activeAt, isSecure: isSecure === 1, path }
  }

  /** The CSRF token of a session. */
  csrfToken(id: string): string {
    return this.#mac('csrf', id).subarray(0, CSRF_BYTES).toString('base64url')
  }

  /** Compares in constant time. */
  hasCsrfToken(id: string, given: string): boolean {
    const expected = Buffer.from(this.csrfToken(id))
    const received = Buffer.from(given)
    return received.length === expected.length && timingSafeEqual(received, expected)
  }

  #mac(purpose: string, text: string): Buffer {
    const key = createHmac('sha256', Buffer.from(this.#secret)).update(`sluice session ${purpose}`).digest()
    return createHmac('sha256', key).update(text).digest()
  }
}

/** The `Set-Cookie` header of a ticket. Without `value`, it removes the cookie. */
export function sessionCookie(
  name: string,
  { isSecure, path }: Pick<SessionTicket, 'isSecure' | 'path'>,
  value?: { readonly text: string; readonly maxAgeSeconds: number },
): string {
  const { text, maxAgeSeconds } = value ?? { text: '', maxAgeSeconds: 0 }
  const attributes = [`Path=${path}`, `Max-Age=${maxAgeSeconds}`, 'HttpOnly', 'SameSite=Strict']
  return [`${name}=${text}`, ...attributes, ...(isSecure ? ['Secure'] : [])].join('; ')
}

/** The value of a cookie; undefined if there is none with this name, or more than one. */
export function cookieIn(header: string | undefined, name: string): string | undefined {
  if (header === undefined) return undefined
  const values = header
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1))
  return values.length === 1 ? values[0] : undefined
}
