import type { IncomingHttpHeaders } from 'node:http'
import type { ApiKeyRole } from '@sluice/config-store'
import type { Answer } from './answer.ts'

/** Who asks, as an API key says. */
export interface Principal {
  /** The visible part of the key, or what it is called in the audit log. */
  readonly id: string
  readonly name: string
  readonly role: ApiKeyRole
  /** The only tenant that the key is good for; undefined for one that is good for all. */
  readonly tenant?: string | undefined
}

/** A request to one operation, checked against its form. */
export interface OperationRequest {
  /** By the names in braces of the operation's path, decoded. */
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  /** The parsed JSON; undefined where the operation takes none. */
  readonly body: unknown
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

/** Answers the requests to one operation, at once when it can. */
export type OperationHandler = (request: OperationRequest) => Answer | StreamAnswer | Promise<Answer | StreamAnswer>

/** Handlers by `METHOD /path` as the table of operations has it, such as `PUT /admin/tiers/{name}`. */
export type OperationHandlers = Readonly<Record<string, OperationHandler>>
