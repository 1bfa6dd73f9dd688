import type { IncomingHttpHeaders } from 'node:http'
import type { ApiKeyRole, Page } from '@sluice/config-store'
import type { Handlers, OperationId, OperationInput, Precondition } from '@sluice/contract'
import { etagOf } from '@sluice/contract'

/** The caller, as identified by an API key. */
export interface Principal {
  /** The visible part of the key, or what it is called in the audit log. */
  readonly id: string
  readonly name: string
  readonly role: ApiKeyRole
  /** The only tenant that the key is good for; undefined for one that is good for all. */
  readonly tenant?: string | undefined
  /** Set for a browser that is signed in. */
  readonly session?: PrincipalSession
}

/** The session of a caller. */
export interface PrincipalSession {
  readonly id: string
  /** `Set-Cookie` header that renews it; undefined when it is new enough. */
  readonly renewal: string | undefined
  /** Whether it goes on; for streams, which outlast the check at their start. */
  readonly goesOn: () => boolean
}

/** What every handler receives besides what its operation declares. */
export interface RequestContext {
  readonly headers: IncomingHttpHeaders
  /** What `If-Match` or `If-None-Match` asks for; undefined without them, and where the operation takes neither. */
  readonly precondition: Precondition | undefined
  /** Set where the operation asks for a role. */
  readonly principal: Principal | undefined
  /** Address of the other end of the connection. */
  readonly remoteAddress: string
  /** Aborted when the client is gone before it is answered. */
  readonly signal: AbortSignal
}

/** An answer that goes on: server-sent events. */
export interface StreamAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Begins to write; `write` says false when the client reads too slowly. Returns what ends it. */
  readonly stream: (write: (text: string) => boolean, end: () => void) => () => void
}

/** A request to operation `Id`: its parameters and body are decoded as the table of operations declares them. */
export type OperationRequest<Id extends OperationId> = RequestContext & OperationInput<Id>

/** What a handler answers with. */
export type Reply = Answer | FileAnswer | StreamAnswer

/** One handler for each of these operations, which answers at once when it can. */
export type OperationHandlers<Id extends OperationId> = Handlers<RequestContext, Reply, Id>

/** The operations that every listener answers by itself. */
export type ListenerOperation = 'livez' | 'readyz' | 'openapi'

/** A decoded request to any operation, for code that treats all operations alike. */
export interface AnyRequest extends RequestContext {
  readonly parameters: object
  readonly body: unknown
}

/** The handler of any operation. */
export type AnyHandler = (request: AnyRequest) => Reply | Promise<Reply>

/** What goes back to a client. */
export interface Answer {
  readonly status: number
  /** All headers but those that Node adds itself (`Date`, `Connection`, `Keep-Alive`). */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** An answer whose body is bytes, such as a file of the dashboard. */
export interface FileAnswer extends Omit<Answer, 'body'> {
  readonly bytes: Uint8Array
}

/** On every answer: browsers must not guess another type of content than the one that is said. */
export const NO_SNIFF = { 'X-Content-Type-Options': 'nosniff' } as const

/** What a handler may add to an answer with a JSON body. */
export interface JsonAnswerOptions {
  readonly headers?: Readonly<Record<string, string>>
  /** Default: `application/json`. */
  readonly mediaType?: string
}

/** An answer whose body is `json` and a line end, so that the prompt of a terminal comes on a line of its own. */
export function jsonAnswer(status: number, json: string, options: JsonAnswerOptions = {}): Answer {
  const body = `${json}\n`
  const headers = {
    'Content-Type': options.mediaType ?? 'application/json',
    'Content-Length': String(Buffer.byteLength(body)),
    ...options.headers,
  }
  return { status, headers, body }
}

/**
 * Makes something of a value: at once when it is there, by promise when it is one. Stores that answer at once stay
 * quick.
 */
export function thenMaybe<T, R>(value: T | Promise<T>, use: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(use) : use(value)
}

/** What an answer says besides its value. */
export interface AdminAnswerOptions {
  /** Default: 200. */
  readonly status?: number
  /** Revision for the `ETag` header. Default: no `ETag`. */
  readonly revision?: number
  readonly headers?: Readonly<Record<string, string>>
}

/** An answer with this value as JSON. Not cacheable: it depends on the caller and on the instant. */
export function adminAnswer(value: unknown, options: AdminAnswerOptions = {}): Answer {
  return jsonAnswer(options.status ?? 200, JSON.stringify(value), { headers: headersOf(options) })
}

/** The answer to a removal. */
export function removedAnswer(options: Pick<AdminAnswerOptions, 'revision'> = {}): Answer {
  return { status: 204, headers: headersOf(options), body: '' }
}

/** A page, without `next` on the last one. */
export function pageAnswer<T>({ items, next }: Page<T>, more: { readonly version?: number } = {}): Answer {
  const { version } = more
  return adminAnswer({ items, next, version }, version === undefined ? {} : { revision: version })
}

function headersOf({ revision, headers }: AdminAnswerOptions): Record<string, string> {
  return {
    'Cache-Control': 'no-store',
    ...(revision === undefined ? {} : { ETag: etagOf(revision) }),
    ...headers,
  }
}
