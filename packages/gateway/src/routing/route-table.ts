import { ResourceTable } from '@sluice/core/internal'
import { normalTarget, pathOf } from './path.ts'

/** What a router needs to know of a request. */
export interface RoutedRequest {
  readonly method: string
  /** In lower case, without port. Undefined if the request has none. */
  readonly host: string | undefined
  /** Request target in origin form, with its query. */
  readonly path: string
  /** Header by its lower-case name. */
  header(name: string): string | undefined
}

/** A route to be found. */
export interface RouteEntry<T> {
  /** In any case; `*.example.com` for every name below. Undefined for any host. */
  readonly hosts: readonly string[] | undefined
  /** Pattern as in rules; `*` for everything. */
  readonly path: string
  readonly methods: readonly string[] | undefined
  /** Required values by lower-case name; `*` for any value. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** What the route protects, as a string: two routes with the same text protect alike. */
  readonly protection: string
  readonly value: T
}

/** A route in the table of one host. */
interface Candidate<T> extends RouteEntry<T> {
  /** 0 for the host itself, more for wider wildcards; the highest for any host. */
  readonly hostRank: number
}

/** What the matches of a path mean: kept with the matches, so that it is worked out once. */
interface Choice<T> {
  /** The route, where it depends on nothing but the path and the method. */
  readonly only: Candidate<T> | undefined
  /** By reading of the path: the routes that match it, the most specific first. */
  readonly byReading: readonly (readonly Candidate<T>[])[]
}

const ANY_HOST_RANK = Number.MAX_SAFE_INTEGER

/**
 * Finds the route of a request: by host, then path, methods and headers; the most specific wins, then the first.
 * Immutable. The cost grows with the length of host and path, not with the number of routes, unless many routes differ
 * in nothing but headers.
 *
 * Paths are matched as rules match them, by the same code. Servers differ in how they read an odd path, such as
 * `/files/..%2fadmin`, and the upstream gets the path as the client sent it. So a request has a route only if every
 * reading of its path leads to routes that protect alike: same upstream, authentication, limits, rewrite. Otherwise its
 * path is ambiguous, and no spelling of one path leads past the protection of another.
 */
export class RouteTable<T> {
  readonly #exact = new Map<string, ResourceTable<Candidate<T>>>()
  /** By the part after `*.`. */
  readonly #wildcards = new Map<string, ResourceTable<Candidate<T>>>()
  readonly #anyHost: ResourceTable<Candidate<T>>

  /** Throws `SLUICE_INVALID_RULE_SET` for a path that is no pattern. */
  constructor(routes: readonly RouteEntry<T>[]) {
    const hosts = new Set(routes.flatMap((route) => (route.hosts ?? []).map((host) => host.toLowerCase())))
    for (const host of hosts) {
      const table = new ResourceTable(candidatesFor(host, routes).map(asResourceEntry))
      if (host.startsWith('*.')) this.#wildcards.set(host.slice(2), table)
      else this.#exact.set(host, table)
    }
    this.#anyHost = new ResourceTable(candidatesFor(undefined, routes).map(asResourceEntry))
  }

  /** Undefined if there is no route, or if the path is ambiguous. */
  find(request: RoutedRequest): T | undefined {
    const found = this.#tableOf(request).findNoted(pathOf(normalTarget(request.path)), request.method)
    found.note ??= choiceOf(found.matches.byReading)
    const choice = found.note as Choice<T>
    return choice.only === undefined ? choose(choice, request)?.value : choice.only.value
  }

  /** Whether servers may read the path of a request without a route as one that has a route. */
  isAmbiguous(request: RoutedRequest): boolean {
    const path = pathOf(normalTarget(request.path))
    const lists = this.#tableOf(request).findByReading(path, request.method)
    const choice = choiceOf(lists)
    if (choice.only !== undefined || choose(choice, request) !== undefined) return false
    return choice.byReading.some((list) => firstMatch(list, request) !== undefined)
  }

  #tableOf(request: RoutedRequest): ResourceTable<Candidate<T>> {
    // Where no route names a host, it need not be read.
    if (this.#exact.size === 0 && this.#wildcards.size === 0) return this.#anyHost
    const { host } = request
    if (host === undefined) return this.#anyHost
    const name = host.endsWith('.') ? host.slice(0, -1) : host
    const exact = this.#exact.get(name)
    if (exact !== undefined) return exact
    if (this.#wildcards.size === 0) return this.#anyHost
    for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
      const wildcard = this.#wildcards.get(name.slice(dot + 1))
      if (wildcard !== undefined) return wildcard
    }
    return this.#anyHost
  }
}

/** The routes for a host, or for those that no route names; of routes that match the same, the preferred one first. */
function candidatesFor<T>(host: string | undefined, routes: readonly RouteEntry<T>[]): readonly Candidate<T>[] {
  const candidates: Candidate<T>[] = []
  for (const route of routes) {
    const hostRank = rankFor(host, route.hosts)
    if (hostRank !== undefined) candidates.push({ ...route, hostRank })
  }
  return candidates.sort((one, other) => one.hostRank - other.hostRank || other.headers.length - one.headers.length)
}

/** How closely the hosts of a route name a host; undefined if they do not. */
function rankFor(host: string | undefined, named: readonly string[] | undefined): number | undefined {
  if (named === undefined) return ANY_HOST_RANK
  if (host === undefined) return undefined
  const ranks = named.flatMap((text) => {
    const name = text.toLowerCase()
    if (name === host) return [0]
    return name.startsWith('*.') && host.endsWith(name.slice(1)) ? [host.length - name.length + 2] : []
  })
  return ranks.length === 0 ? undefined : Math.min(...ranks)
}

function asResourceEntry<T>(candidate: Candidate<T>): {
  readonly pattern: string
  readonly methods: readonly string[] | undefined
  readonly value: Candidate<T>
} {
  return { pattern: candidate.path, methods: candidate.methods, value: candidate }
}

function choiceOf<T>(lists: readonly (readonly Candidate<T>[])[]): Choice<T> {
  const byReading = lists.map((list) => [...list].sort((one, other) => one.hostRank - other.hostRank))
  const [first] = byReading[0] ?? []
  const isFixed =
    first !== undefined &&
    byReading.every(([one]) => one !== undefined && one.headers.length === 0 && one.protection === first.protection)
  return { only: isFixed ? first : undefined, byReading }
}

/** The route of the first reading, if the others lead to routes that protect alike. */
function choose<T>({ byReading }: Choice<T>, request: RoutedRequest): Candidate<T> | undefined {
  let chosen: Candidate<T> | undefined
  for (const list of byReading) {
    const candidate = firstMatch(list, request)
    if (candidate === undefined) return undefined
    if (chosen !== undefined && candidate.protection !== chosen.protection) return undefined
    chosen ??= candidate
  }
  return chosen
}

function firstMatch<T>(list: readonly Candidate<T>[], request: RoutedRequest): Candidate<T> | undefined {
  return list.find(({ headers }) =>
    headers.every(([name, value]) => {
      const given = request.header(name)
      return given !== undefined && (value === '*' || given === value)
    }),
  )
}
