import type { Answer } from '../../operations/handler.ts'
import { problemAnswer } from '../../operations/problems.ts'
import type { Settings } from '../../settings/settings.ts'
import { isLoopback } from '../../settings/settings.ts'

/** What the names in braces of a path stand for, decoded. */
export type PathParameters = Readonly<Record<string, string>>

/** What happens at one path. */
export interface Route<Target> {
  /**
   * The whole path. Every segment is compared byte by byte, or is a name in braces and stands for any string but none.
   */
  readonly path: string
  readonly method: string
  readonly target: Target
}

/** What was found for a request. */
export interface Found<Target> {
  readonly target: Target
  readonly params: PathParameters
}

/** What is at a path for a method, or the answer to give where there is nothing. */
export type Router<Target> = (url: string, method: string) => Found<Target> | Answer

const NO_PARAMETERS: PathParameters = Object.freeze({})

const BAD_ENCODING = problemAnswer('SLUICE_HTTP_MALFORMED', {
  detail: 'The path has a % that begins no percent-encoded UTF-8. Encode it.',
})

/** All methods of one path. */
class Place<Target> {
  readonly #found = new Map<string, Found<Target>>()
  #notAllowed: Answer | undefined

  add(method: string, target: Target): void {
    const found = { target, params: NO_PARAMETERS }
    this.#found.set(method, found)
    // Where there is something to get, its headers can be asked for.
    if (method === 'GET') this.#found.set('HEAD', found)
    this.#notAllowed = undefined
  }

  at(method: string): Found<Target> | Answer {
    return this.#found.get(method) ?? this.#methodNotAllowed()
  }

  #methodNotAllowed(): Answer {
    const allow = [...this.#found.keys()].join(', ')
    this.#notAllowed ??= problemAnswer('SLUICE_HTTP_METHOD_NOT_ALLOWED', {
      detail: `This path takes ${allow}.`,
      headers: { Allow: allow },
    })
    return this.#notAllowed
  }
}

interface Pattern<Target> {
  /** Undefined where anything may stand. */
  readonly segments: readonly (string | undefined)[]
  readonly names: readonly string[]
  readonly place: Place<Target>
}

/**
 * A router over `routes`; what fits none is answered with 404 or 405. A path without names in braces is found by one
 * look into a map, and goes before one with.
 *
 * @param hint - where a lost client finds what there is, as a sentence
 */
export function createRouter<Target>(routes: readonly Route<Target>[], hint: string): Router<Target> {
  const exact = new Map<string, Place<Target>>()
  const patterns = new Map<string, Pattern<Target>>()
  for (const { path, method, target } of routes) {
    if (path.includes('{')) {
      const pattern = patterns.get(path) ?? patternOf<Target>(path)
      patterns.set(path, pattern)
      pattern.place.add(method, target)
    } else {
      const place = exact.get(path) ?? new Place<Target>()
      exact.set(path, place)
      place.add(method, target)
    }
  }
  const notFound = problemAnswer('SLUICE_HTTP_NOT_FOUND', { detail: hint })
  const listed = [...patterns.values()]
  return (url, method) => {
    const place = exact.get(url)
    if (place !== undefined) return place.at(method)
    const path = pathOf(url)
    return exact.get(path)?.at(method) ?? matched(listed, path, method) ?? notFound
  }
}

function patternOf<Target>(path: string): Pattern<Target> {
  const parts = path.split('/')
  const isName = (part: string): boolean => part.startsWith('{')
  return {
    segments: parts.map((part) => (isName(part) ? undefined : part)),
    names: parts.filter(isName).map((part) => part.slice(1, -1)),
    place: new Place<Target>(),
  }
}

function matched<Target>(
  patterns: readonly Pattern<Target>[],
  path: string,
  method: string,
): Found<Target> | Answer | undefined {
  const segments = path.split('/')
  const pattern = patterns.find((one) => fits(one, segments))
  if (pattern === undefined) return undefined
  const found = pattern.place.at(method)
  if ('status' in found) return found
  const params = decoded(pattern, segments)
  return params === undefined ? BAD_ENCODING : { target: found.target, params }
}

function fits<Target>(pattern: Pattern<Target>, segments: readonly string[]): boolean {
  return (
    pattern.segments.length === segments.length &&
    pattern.segments.every((wanted, index) =>
      wanted === undefined ? segments[index] !== '' : wanted === segments[index],
    )
  )
}

function decoded<Target>(pattern: Pattern<Target>, segments: readonly string[]): PathParameters | undefined {
  const values = segments.filter((_, index) => pattern.segments[index] === undefined)
  try {
    return Object.fromEntries(pattern.names.map((name, index) => [name, decodeURIComponent(values[index]!)]))
  } catch {
    return undefined
  }
}

/** The path of a request target with a query, or in absolute form as sent to proxies. */
function pathOf(url: string): string {
  const withoutOrigin = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*/i, '')
  const end = withoutOrigin.search(/[?#]/)
  return end < 0 ? withoutOrigin : withoutOrigin.slice(0, end)
}

/** Whether requests with this Host header are answered. */
export type AllowsHost = (host: string) => boolean

/** A name, or an IPv6 address in brackets, and a port that may be there. */
const HOST = /^(\[[0-9a-f:.%]+\]|[^:]*)(?::\d*)?$/i

/**
 * Which Host headers are answered; undefined when all are. A web page can make its own name resolve to 127.0.0.1 and
 * send requests here, but only under that name: a service that listens on this machine alone answers to no other names
 * than its own. The port is not compared: tunnels and port mappings change it.
 */
export function allowedHosts({ host, allowedHosts: allowed }: HostSettings): AllowsHost | undefined {
  const isLocal = isLoopback(host)
  if (!isLocal && allowed.length === 0) return undefined
  const names = new Set([...allowed, ...(isLocal ? ['localhost', ...boundAddresses(host)] : [])].map(hostName))
  let last: string | undefined
  return (given) => {
    // Most clients send the same again and again.
    if (given === last) return true
    const [, name] = HOST.exec(given) ?? []
    if (name === undefined || !names.has(name.toLowerCase())) return false
    last = given
    return true
  }
}

/** The settings that say which Host headers are answered. */
export type HostSettings = Pick<Settings, 'host' | 'allowedHosts'>

function boundAddresses(host: string): readonly string[] {
  return host.toLowerCase() === 'localhost' ? ['127.0.0.1', '::1'] : [host]
}

/** A name or an address as it stands in a Host header. */
function hostName(text: string): string {
  const isBareIpv6 = text.includes(':') && !text.startsWith('[')
  return (isBareIpv6 ? `[${text}]` : text).toLowerCase()
}
