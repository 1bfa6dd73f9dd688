/** Characters that a request target may have: visible ASCII without `#`. Others are read differently by servers. */
const TARGET = /^[!"$-~]+$/

/** A name, an IPv4 address or an IPv6 address in brackets, and a port. */
const AUTHORITY = /^(?:[\w.-]+|\[[\dA-Fa-f:.]+\])(?::\d{1,5})?$/

const ABSOLUTE = /^https?:\/\//i

const LONGEST_AUTHORITY = 261

const SLASH = 0x2f

/** Whether a `Host` or `:authority` has a form that all servers read the same way. */
export function isAuthority(text: string): boolean {
  return text.length <= LONGEST_AUTHORITY && AUTHORITY.test(text)
}

/** Host of an authority, in lower case and without its port. */
export function hostOf(authority: string): string {
  const end = authority.startsWith('[') ? authority.indexOf(']') + 1 : authority.indexOf(':')
  return (end <= 0 ? authority : authority.slice(0, end)).toLowerCase()
}

/**
 * The request target in origin form: `/path?query`. A target in absolute form must name the authority of the request,
 * because an upstream would take one of the two and the router the other. Undefined if the target cannot be used.
 */
export function originForm(target: string, authority: string | undefined): string | undefined {
  if (!TARGET.test(target)) return undefined
  if (target.charCodeAt(0) === SLASH) return target
  const scheme = ABSOLUTE.exec(target)
  if (scheme === null || authority === undefined) return undefined
  const rest = target.slice(scheme[0].length)
  const end = rest.search(/[/?]/)
  const named = end < 0 ? rest : rest.slice(0, end)
  if (!isSameAuthority(named, authority, scheme[0].length === 'https://'.length ? ':443' : ':80')) return undefined
  if (end < 0) return '/'
  const path = rest.slice(end)
  return path.charCodeAt(0) === SLASH ? path : `/${path}`
}

function isSameAuthority(one: string, other: string, defaultPort: string): boolean {
  return isAuthority(one) && withoutPort(one, defaultPort) === withoutPort(other, defaultPort)
}

function withoutPort(authority: string, port: string): string {
  const text = authority.toLowerCase()
  return text.endsWith(port) ? text.slice(0, -port.length) : text
}
