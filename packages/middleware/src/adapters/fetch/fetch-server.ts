import type { OptionForms } from '@sluice/core/options'

/** Validation of `address`, for runtimes that do not expose the address. */
export const ADDRESS_FORM: OptionForms = {
  address: {
    expected: 'a function from the request to the address at the other end of the connection',
    accepts: (value) => typeof value === 'function',
  },
}

/** The answer as Node's http module knows it, as far as it tells when it ended. */
interface NodeResponse {
  readonly statusCode: number
  readonly headersSent: boolean
  readonly closed?: boolean
  readonly destroyed?: boolean
  once(event: 'close', run: () => void): unknown
}

/**
 * Remote address from the server argument of a fetch handler: `{ incoming }` of @hono/node-server, the server of
 * Bun.serve, the connection info of Deno.serve. Undefined for others.
 */
export function peerAddressFrom(server: unknown, request: Request): string | undefined {
  const known = property(server, 'server') ?? server
  const ofNode = property(property(property(known, 'incoming'), 'socket'), 'remoteAddress')
  if (typeof ofNode === 'string') return ofNode
  const ofDeno = property(property(known, 'remoteAddr'), 'hostname')
  if (typeof ofDeno === 'string') return ofDeno
  if (typeof property(known, 'requestIP') !== 'function') return undefined
  const ofBun = property((known as { requestIP(of: Request): unknown }).requestIP(request), 'address')
  return typeof ofBun === 'string' ? ofBun : undefined
}

/** The Node response behind a fetch handler, if any. */
export function nodeResponseFrom(server: unknown): NodeResponse | undefined {
  const answer = property(property(server, 'server') ?? server, 'outgoing')
  const isAnswer = typeof property(answer, 'once') === 'function' && typeof property(answer, 'statusCode') === 'number'
  return isAnswer ? (answer as NodeResponse) : undefined
}

function property(of: unknown, name: string): unknown {
  return typeof of === 'object' && of !== null ? (of as Readonly<Record<string, unknown>>)[name] : undefined
}

/** Path and query of an absolute URL, unchanged. */
export function pathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('://') + 3)
  return start < 0 ? '/' : url.slice(start)
}
