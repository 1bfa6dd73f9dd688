import type { ServerResponse } from 'node:http'
import type { DecisionLike } from '@sluice/contract'
import type { HttpRequest } from '../../http/http-request.ts'
import type { NodeResponse } from '../node/node-response.ts'

/** The used part of a request, on Express and Fastify. */
export interface PlatformRequest {
  readonly method: string
  readonly url: string
  readonly originalUrl?: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly socket: { readonly remoteAddress?: string | undefined }
  /** Express only. */
  readonly route?: { readonly path?: unknown }
  /** Fastify only. */
  readonly routeOptions?: { readonly url?: string | undefined }
  rateLimit?: DecisionLike | undefined
}

/** The used part of a response. Express: a Node response. Fastify: a wrapper of one. */
export interface PlatformResponse {
  readonly raw?: NodeResponse
  header(name: string, value: string): unknown
  /** Express only: `send` calls it for objects. */
  json?(body: unknown): unknown
}

/** A request and its response. */
export interface NestExchange {
  readonly request: PlatformRequest
  readonly response: PlatformResponse
}

/**
 * Sets the content type when `body` is sent. Nest on Express replaces any type other than `application/json` that is
 * set before an exception, and logs a warning. Other bodies keep their own type.
 */
export function setTypeWith(response: PlatformResponse, body: unknown, type: string): void {
  const { json } = response
  if (json === undefined) {
    response.header('Content-Type', type)
    return
  }
  response.json = (sent) => {
    if (sent === body) response.header('Content-Type', type)
    return json.call(response, sent)
  }
}

/** The underlying Node response. */
export function nodeResponse(response: PlatformResponse): NodeResponse {
  return response.raw ?? (response as PlatformResponse & ServerResponse)
}

/** View of a request. A class, because every object literal with a getter has its own hidden class, which is slow. */
export class NestHttpRequest implements HttpRequest {
  readonly method: string
  readonly url: string
  readonly #request: PlatformRequest

  constructor(request: PlatformRequest) {
    this.method = request.method
    this.url = request.originalUrl ?? request.url
    this.#request = request
  }

  get route(): string | undefined {
    const { route, routeOptions } = this.#request
    const path = routeOptions === undefined ? route?.path : routeOptions.url
    return typeof path === 'string' ? path : undefined
  }

  get peerAddress(): string | undefined {
    return this.#request.socket.remoteAddress
  }

  header(name: string): string | string[] | undefined {
    return this.#request.headers[name]
  }
}
