import { systemTimers } from '@sluice/core'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Denial } from '../../http/denial-response.ts'
import type { HttpRequest } from '../../http/http-request.ts'
import type { MaybePromise } from '../../http/maybe-promise.ts'
import { isPromise } from '../../http/maybe-promise.ts'
import type { HttpOutcome } from '../../http/request-outcome.ts'
import { narrowestDecision } from '../../http/request-outcome.ts'
import type { HttpLimiter } from '../../limiter/http-limiter.ts'
import type { RateLimitOptions } from '../../options/rate-limit-options.ts'
import { admitRequest } from '../node/node-response.ts'

/** Options of a route limit. */
export interface FastifyLimitOptions extends RateLimitOptions<FastifyRequest> {
  /**
   * Answers in place of the default denial. Receives its status, headers and body. Rate limit headers and status are
   * already set. Send with `reply.send` or return the payload.
   */
  readonly onLimited?: (request: FastifyRequest, reply: FastifyReply, denial: Denial) => MaybePromise<unknown>
}

/** A Fastify hook that allows or denies requests. */
export type FastifyLimitHook = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void

/** The hook for `limiter`. */
export function limitHook(
  limiter: HttpLimiter<FastifyRequest>,
  { onLimited, timers = systemTimers }: FastifyLimitOptions,
): FastifyLimitHook {
  return (request, reply, done) => {
    const settle = (outcome: HttpOutcome): MaybePromise<unknown> => {
      request.rateLimit = narrowestDecision(request.rateLimit, outcome.decision)
      for (const name in outcome.headers) reply.header(LOWER_CASE[name] ?? name, outcome.headers[name])
      if (!outcome.allowed) return onLimited ? answer(reply, outcome, onLimited) : deny(reply, outcome)
      const turn = admitRequest(reply.raw, outcome, timers)
      if (isPromise(turn)) return turn.then((isHere) => (isHere ? done() : undefined))
      return turn ? done() : undefined
    }
    // What is thrown at once, Fastify catches; returning a promise would make it go on with a denied request.
    const settled = limiter.begin(request, settle)
    if (isPromise(settled)) settled.catch(done)
  }
}

/** Fastify stores lower-case names, and converting others is slow. */
const LOWER_CASE: Readonly<Record<string, string>> = {
  'X-RateLimit-Limit': 'x-ratelimit-limit',
  'X-RateLimit-Remaining': 'x-ratelimit-remaining',
  'X-RateLimit-Reset': 'x-ratelimit-reset',
  'X-RateLimit-Reset-After': 'x-ratelimit-reset-after',
  RateLimit: 'ratelimit',
  'RateLimit-Policy': 'ratelimit-policy',
}

function deny(reply: FastifyReply, { status, body }: Denial): void {
  // Fastify adds a charset to the type of a string that it would serialize itself.
  reply.code(status).serializer(asItIs).send(body)
}

function asItIs(body: string): string {
  return body
}

async function answer(
  reply: FastifyReply,
  denial: Denial,
  onLimited: NonNullable<FastifyLimitOptions['onLimited']>,
): Promise<void> {
  // The type is that of the usual body, and Fastify would not choose another.
  reply.code(denial.status).removeHeader('content-type')
  const payload = await onLimited(reply.request, reply, denial)
  if (payload !== undefined && !reply.sent) reply.send(payload)
}

/** View of a Fastify request. */
export class FastifyHttpRequest implements HttpRequest {
  readonly #request: FastifyRequest

  constructor(request: FastifyRequest) {
    this.#request = request
  }

  get method(): string {
    return this.#request.method
  }

  get url(): string {
    return this.#request.originalUrl
  }

  get route(): string | undefined {
    return this.#request.routeOptions.url
  }

  /** Not `request.ip`, which may come from a header. */
  get peerAddress(): string | undefined {
    return this.#request.raw.socket.remoteAddress
  }

  header(name: string): string | readonly string[] | undefined {
    return this.#request.raw.headers[name]
  }
}
