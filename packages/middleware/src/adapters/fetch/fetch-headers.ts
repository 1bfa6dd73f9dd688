import type { HttpOutcome } from '../../http/request-outcome.ts'

interface Announcement {
  readonly headers: Readonly<Record<string, string>>
  /** Whether headers of the response take precedence, as for custom denials. */
  readonly givesWay: boolean
}

/** Stores pending headers on a request. A WeakMap is measurably slower. */
const ANNOUNCEMENT: unique symbol = Symbol('sluice.announcement')

interface Marked {
  [ANNOUNCEMENT]?: Announcement
}

/**
 * Remembers the headers of an outcome until there is a response. With several limiters the first one sees the response
 * last, but the order of decisions counts, because each announces the combined result so far. `context` stands for the
 * request.
 */
export function rememberHeaders(context: object, { allowed, headers }: HttpOutcome): void {
  const before = (context as Marked)[ANNOUNCEMENT]
  const all = before === undefined ? headers : { ...before.headers, ...headers }
  const announcement = { headers: allowed ? all : withoutBody(all), givesWay: !allowed }
  ;(context as Marked)[ANNOUNCEMENT] = announcement
}

/**
 * `response` with the remembered headers of `context`. Copies responses with immutable headers, such as
 * Response.redirect() and fetched responses.
 */
export function withRememberedHeaders(context: object, response: Response): Response {
  const announcement = (context as Marked)[ANNOUNCEMENT]
  if (announcement === undefined) return response
  try {
    setHeaders(response, announcement)
    return response
  } catch {
    // Response.error() and protocol switches (1xx) cannot be copied.
    if (response.status < 200) return response
    const copy = new Response(response.body, response)
    setHeaders(copy, announcement)
    return copy
  }
}

function setHeaders(response: Response, { headers, givesWay }: Announcement): void {
  for (const name of Object.keys(headers)) {
    if (!(givesWay && response.headers.has(name))) response.headers.set(name, headers[name]!)
  }
}

/** Removes the headers of the default body. */
function withoutBody({ 'Content-Type': _, ...rest }: Readonly<Record<string, string>>): Record<string, string> {
  return rest
}
