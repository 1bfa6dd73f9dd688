import type { HttpOutcome } from '../../http/outcome.ts'

interface Announcement {
  readonly headers: Readonly<Record<string, string>>
  /** Whether whoever answers may have chosen otherwise, as whoever answers in place of the usual denial does. */
  readonly givesWay: boolean
}

/** Carries on a request what is to be announced on its answer. A map beside it would cost more than all the rest. */
const ANNOUNCEMENT: unique symbol = Symbol('sluice.announcement')

interface Marked {
  [ANNOUNCEMENT]?: Announcement
}

/**
 * Remembers the headers of an outcome until there is an answer to set them on. Of several limiters in front of one handler the
 * first sees the answer last; what counts is the order in which they were asked, because each announces what all of them so
 * far come to. `context` stands for the request.
 */
export function rememberHeaders(context: object, { allowed, headers }: HttpOutcome): void {
  const before = (context as Marked)[ANNOUNCEMENT]
  const all = before === undefined ? headers : { ...before.headers, ...headers }
  const announcement = { headers: allowed ? all : withoutBody(all), givesWay: !allowed }
  ;(context as Marked)[ANNOUNCEMENT] = announcement
}

/**
 * `response` with the headers remembered for `context`: a copy where its own cannot be changed, such as those of
 * Response.redirect() and of answers fetched from elsewhere.
 */
export function withRememberedHeaders(context: object, response: Response): Response {
  const announcement = (context as Marked)[ANNOUNCEMENT]
  if (announcement === undefined) return response
  try {
    setHeaders(response, announcement)
    return response
  } catch {
    // Not an answer but the failure of one (Response.error()), or the switch to another protocol: neither can be copied.
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

/** Without what tells about the usual body. */
function withoutBody({ 'Content-Type': _, ...rest }: Readonly<Record<string, string>>): Record<string, string> {
  return rest
}
