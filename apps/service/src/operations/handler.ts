import type { IncomingHttpHeaders } from 'node:http'
import type { ApiKeyRole, Page } from '@sluice/config-store'
import type { Handlers, OperationId, OperationInput, Precondition } from '@sluice/contract'
import { etagOf } from '@sluice/contract'

/** The caller, as identified by an API key. */
export interface Principal {
  /** The visible part of the key, or its name in the audit log. */
  readonly id: string
  readonly name: string
  readonly role: ApiKeyRole
  /** The only tenant that the key is valid for; undefined for all. */
  readonly tenant?: string | undefined
  /** Set for a browser session. */
  readonly session?: PrincipalSession
}

/** The session of a caller. */
export interface PrincipalSession {
  readonly id: string
  /** `Set-Cookie` header that renews it; undefined if it is recent enough. */
  readonly renewal: string | undefined
  /** Whether it is still valid; for streams, which outlast the check at their start. */
  readonly goesOn: () => boolean
}

/** What every handler receives besides the parameters and body of its operation. */
export interface RequestContext {
  readonly headers: IncomingHttpHeaders
  /** The condition of `If-Match` or `If-None-Match`; undefined without them, or if the operation supports neither. */
  readonly precondition: Precondition | undefined
  /** Set if the operation requires a role. */
  readonly principal: Principal | undefined
  /** Remote address of the connection. */
  readonly remoteAddress: string
  /** Aborted if the client disconnects before it is answered. */
  readonly signal: AbortSignal
}

/** A streaming answer: server-sent events. */
export interface StreamAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Starts the stream; `write` returns false if the client reads too slowly. Returns a function that stops it. */
  readonly stream: (write: (text: string) => boolean, end: () => void) => () => void
}

/** A request to operation `Id`, with parameters and body decoded as its definition declares them. */
export type OperationRequest<Id extends OperationId> = RequestContext & OperationInput<Id>

/** Result of a handler. */
export type Reply = Answer | FileAnswer | StreamAnswer

/** One handler for each of these operations. Synchronous where possible. */
export type OperationHandlers<Id extends OperationId> = Handlers<RequestContext, Reply, Id>

/** Operations that every listener implements itself. */
export type ListenerOperation = 'livez' | 'readyz' | 'openapi'

/** A decoded request to any operation, for generic code. */
export interface AnyRequest extends RequestContext {
  readonly parameters: object
  readonly body: unknown
}

/** The handler of any operation. */
export type AnyHandler = (request: AnyRequest) => Reply | Promise<Reply>

/** A response. */
export interface Answer {
  readonly status: number
  /** All headers except those that Node adds itself (`Date`, `Connection`, `Keep-Alive`). */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** An answer whose body is bytes, such as a file of the dashboard. */
export interface FileAnswer extends Omit<Answer, 'body'> {
  readonly bytes: Uint8Array
}

/** On every answer: browsers must not guess another content type. */
export const NO_SNIFF = { 'X-Content-Type-Options': 'nosniff' } as const

/** Options of {@link jsonAnswer}. */
export interface JsonAnswerOptions {
  readonly headers?: Readonly<Record<string, string>>
  /** Default: `application/json`. */
  readonly mediaType?: string
}

/** An answer with a JSON body and a line end, so that a terminal prompt starts on a new line. */
export function jsonAnswer(status: number, json: string, options: JsonAnswerOptions = {}): Answer {
  const body = `${json}\n`
  const headers = {
    'Content-Type': options.mediaType ?? 'application/json',
    'Content-Length': String(Buffer.byteLength(body)),
    ...options.headers,
  }
  return { status, headers, body }
}

/** Transforms a value or a promise of it. Stays synchronous for values, so synchronous stores stay fast. */
export function thenMaybe<T, R>(value: T | Promise<T>, use: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(use) : use(value)
}

/** Options of {@link adminAnswer}. */
export interface AdminAnswerOptions {
  /** Default: 200. */
  readonly status?: number
  /** Revision for the `ETag` header. Default: no `ETag`. */
  readonly revision?: number
  readonly headers?: Readonly<Record<string, string>>
}

/** An answer with this value as JSON. Not cacheable: it depends on the caller and the time. */
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
