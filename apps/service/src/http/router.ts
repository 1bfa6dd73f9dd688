import type { IncomingMessage } from 'node:http'
import type { Answer } from './answer.ts'
import { problemAnswer } from './problem-answer.ts'

/** What a request gets at one path with one method. */
export interface Endpoint {
  /** What the body must be: `json`, or `none` where it is not looked at. */
  readonly body: 'json' | 'none'
  /** Answers, at once when it can. `body` is the parsed JSON, undefined where there is none. */
  readonly handle: (body: unknown) => Answer | Promise<Answer>
}

/** What happens at one path. */
export interface Route {
  /** The whole path; it is compared byte by byte, so no second spelling of it exists. */
  readonly path: string
  /** One endpoint for each method. Where there is one for `GET`, it also answers `HEAD`. */
  readonly methods: Readonly<Record<string, Endpoint>>
}

/** The endpoint for a request, or the answer to give where there is none. */
export type Router = (request: IncomingMessage) => Endpoint | Answer

interface Target {
  readonly endpoints: ReadonlyMap<string, Endpoint>
  readonly methodNotAllowed: Answer
}

/** A router over `routes`; what fits none is answered with 404 or 405. */
export function createRouter(routes: readonly Route[]): Router {
  const targets = new Map(routes.map(({ path, methods }) => [path, targetOf(methods)]))
  const notFound = problemAnswer('SLUICE_HTTP_NOT_FOUND', {
    detail: `This service answers at ${[...targets.keys()].join(' and ')}.`,
  })
  return ({ url = '', method = '' }) => {
    const target = targets.get(url) ?? targets.get(pathOf(url))
    return target === undefined ? notFound : (target.endpoints.get(method) ?? target.methodNotAllowed)
  }
}

function targetOf(methods: Route['methods']): Target {
  const endpoints = new Map(Object.entries(methods))
  const get = endpoints.get('GET')
  if (get !== undefined) endpoints.set('HEAD', get)
  const allow = [...endpoints.keys()].join(', ')
  const methodNotAllowed = problemAnswer('SLUICE_HTTP_METHOD_NOT_ALLOWED', {
    detail: `This path takes ${allow}.`,
    headers: { Allow: allow },
  })
  return { endpoints, methodNotAllowed }
}

/** The path of a request target that is more than a path: with a query, or in the form that proxies are asked in. */
function pathOf(url: string): string {
  const withoutOrigin = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*/i, '')
  const end = withoutOrigin.search(/[?#]/)
  return end < 0 ? withoutOrigin : withoutOrigin.slice(0, end)
}
