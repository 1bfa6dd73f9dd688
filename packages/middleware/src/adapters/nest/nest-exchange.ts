import type { ServerResponse } from 'node:http'
import type { DecisionLike } from '@sluice/contract'
import type { HttpRequest } from '../../http/http-request.ts'
import type { NodeResponse } from '../node/node-response.ts'

/** What is used of a request, on the platforms of Nest: Express and Fastify. */
export interface PlatformRequest {
  readonly method: string
  readonly url: string
  readonly originalUrl?: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly socket: { readonly remoteAddress?: string | undefined }
  /** That of Express. */
  readonly route?: { readonly path?: unknown }
  /** That of Fastify. */
  readonly routeOptions?: { readonly url?: string | undefined }
  rateLimit?: DecisionLike | undefined
}

/** What is used of an answer, on the platforms of Nest. That of Express is an answer of Node, that of Fastify has one. */
export interface PlatformResponse {
  readonly raw?: NodeResponse
  header(name: string, value: string): unknown
  /** That of Express, which `send` calls for objects. */
  json?(body: unknown): unknown
}

/** A request, and the answer to be. */
export interface NestExchange {
  readonly request: PlatformRequest
  readonly response: PlatformResponse
}

/**
 * Gives an answer its media type when `body` is sent, and not before. Nest on Express replaces a type that is set before an
 * exception and is not `application/json`, and logs a warning. An answer that is made of something else keeps its own type.
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

/** The answer as Node's http module knows it. */
export function nodeResponse(response: PlatformResponse): NodeResponse {
  return response.raw ?? (response as PlatformResponse & ServerResponse)
}

/**
 * The request as the limiter wants it. A class, because every object literal with a getter has a shape of its own, which costs
 * more than all the rest.
 */
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
