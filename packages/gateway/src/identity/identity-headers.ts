import { DEFAULTS, type IdentityHeadersConfig } from '../config/gateway-config.ts'
import type { Principal } from './consumer-keys.ts'

type Field = keyof IdentityHeadersConfig

const USUAL_NAMES: Readonly<Record<Field, string>> = DEFAULTS.identityHeaders

const FIELDS = Object.keys(USUAL_NAMES) as readonly Field[]

/** Headers in which other gateways pass on an identity. Upstreams that came from there may still read them. */
const FOREIGN_NAMES = [
  'x-consumer',
  'x-consumer-id',
  'x-consumer-custom-id',
  'x-consumer-username',
  'x-consumer-groups',
  'x-credential-identifier',
  'x-anonymous-consumer',
  'x-authenticated-userid',
  'x-authenticated-scope',
  'x-forwarded-user',
  'x-remote-user',
] as const

/** Visible ASCII without `%`, which starts an encoded byte. */
const PLAIN = /^[\x21-\x24\x26-\x7e]*$/

/** Longer dashes-and-underscores combinations are not spelled out: no identity header has that many parts. */
const MOST_DASHES = 6

/** Sets the identity headers for the upstream, and names all that clients must not set. */
export class IdentityHeaders {
  /** In lower case, in every spelling that servers which turn `-` into `_` take for the same. */
  readonly removed: ReadonlySet<string>
  readonly #names: Readonly<Record<Field, string>>
  readonly #made = new WeakMap<Principal, readonly string[]>()

  constructor(names: IdentityHeadersConfig = {}) {
    this.#names = { ...USUAL_NAMES, ...names }
    const all = [...Object.values(USUAL_NAMES), ...Object.values(this.#names), ...FOREIGN_NAMES]
    this.removed = new Set(all.flatMap((name) => spellingsOf(name.toLowerCase())))
  }

  /** Names and values in turn. The same array for the same principal. */
  of(principal: Principal): readonly string[] {
    const made = this.#made.get(principal)
    if (made !== undefined) return made
    const headers: string[] = []
    for (const field of FIELDS) {
      const value = principal[field]
      if (value !== undefined) headers.push(this.#names[field], headerValue(value))
    }
    this.#made.set(principal, headers)
    return headers
  }
}

/** A value that fits into a header: all but visible ASCII is percent-encoded UTF-8. */
function headerValue(text: string): string {
  return PLAIN.test(text) ? text : encodeURIComponent(text.toWellFormed())
}

/** CGI and WSGI servers cannot tell `X_User_Id` from `X-User-Id`. */
function spellingsOf(name: string): readonly string[] {
  const parts = name.split('-')
  if (parts.length > MOST_DASHES) return [name, parts.join('_')]
  let spellings = [parts[0]!]
  for (const part of parts.slice(1)) spellings = spellings.flatMap((start) => [`${start}-${part}`, `${start}_${part}`])
  return spellings
}
