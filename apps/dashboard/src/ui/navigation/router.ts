import type { ReadonlySignal } from '@preact/signals'
import { signal } from '@preact/signals'
import { serviceRoot } from '../../api/connection.ts'

/** Where the page is, below the base of the service. */
export interface PageLocation {
  /** Starts with a slash, ends with none, such as `/rules/orders`. */
  readonly path: string
  readonly query: URLSearchParams
}

/** Changes of the query; undefined removes a parameter. */
export type QueryChange = Readonly<Record<string, string | undefined>>

const basePath = serviceRoot.pathname
const current = signal<PageLocation>(read())

/** The current location. Reading it in a component draws the component again when it changes. */
export const location: ReadonlySignal<PageLocation> = current

function read(): PageLocation {
  if (typeof window === 'undefined') return { path: '/', query: new URLSearchParams() }
  const { pathname, search } = window.location
  const below = pathname.startsWith(basePath) ? pathname.slice(basePath.length) : ''
  return { path: `/${below.replace(/\/+$/, '')}`, query: new URLSearchParams(search) }
}

/** Follows the back and forward buttons. */
export function startRouter(): void {
  window.addEventListener('popstate', () => {
    current.value = read()
  })
}

/** The URL of a path such as `/rules?stage=draft`, for `href`. */
export function hrefOf(path: string): string {
  return basePath + path.replace(/^\//, '')
}

/** Goes to a path. `replace` leaves no entry in the history. */
export function navigate(path: string, { replace = false }: { replace?: boolean } = {}): void {
  if (replace) window.history.replaceState(null, '', hrefOf(path))
  else window.history.pushState(null, '', hrefOf(path))
  const from = current.peek().path
  current.value = read()
  if (from !== current.peek().path) window.scrollTo(0, 0)
}

/** The current path with another query. */
export function pathWith(change: QueryChange): string {
  const { path, query } = current.value
  const next = new URLSearchParams(query)
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined || value === '') next.delete(name)
    else next.set(name, value)
  }
  const text = next.toString()
  return text === '' ? path : `${path}?${text}`
}

/** Changes the query of the current page. Filters replace the entry of the history: back leaves the page. */
export function setQuery(change: QueryChange): void {
  navigate(pathWith(change), { replace: true })
}

/** A parameter of the query; undefined when it is absent. */
export function queryParameter(name: string): string | undefined {
  return current.value.query.get(name) ?? undefined
}

/**
 * The parameters of `path` under a pattern such as `/rules/:name`, decoded; undefined when it does not match. A part of
 * a pattern matches one segment.
 */
export function matchPath(pattern: string, path: string): Readonly<Record<string, string>> | undefined {
  const wanted = pattern.split('/')
  const found = path.split('/')
  if (wanted.length !== found.length) return undefined
  const parameters: Record<string, string> = {}
  for (const [index, part] of wanted.entries()) {
    const segment = found[index] ?? ''
    if (part.startsWith(':')) {
      if (segment === '') return undefined
      parameters[part.slice(1)] = decoded(segment)
    } else if (part !== segment) return undefined
  }
  return parameters
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
