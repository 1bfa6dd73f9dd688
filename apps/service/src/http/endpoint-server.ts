import type { IncomingMessage, ServerResponse } from 'node:http'
import type { InFlight } from '@sluice/runtime'
import type { Answer } from './answer.ts'
import type { BodyForm, Endpoint } from './endpoint.ts'
import { Exchange } from './exchange.ts'
import type { RequestServer } from './http-server.ts'
import { writeAnswer } from './http-server.ts'
import { readJsonBody } from './json-body.ts'
import type { Principal, StreamAnswer } from './operation-handler.ts'
import { invalidRequest, problemAnswer } from './problem-answer.ts'
import { discardBody } from './request-body.ts'
import type { Router } from './router.ts'
import { sendStream } from './stream-answer.ts'

/** What is told of a failure. */
export interface FailureDetails {
  /** `METHOD /path` of the operation. */
  readonly operation: string
  /** What the client was given to ask about it by. */
  readonly requestId: string
}

/** Options of {@link EndpointServer}. */
export interface EndpointServerOptions {
  readonly route: Router<Endpoint>
  /** Told of every exception of an endpoint; the client only learns that there was one. */
  readonly reportError: (error: unknown, details: FailureDetails) => void
  /** A name for a request that came without one. */
  readonly newRequestId: () => string
}

const NO_HOST = problemAnswer('SLUICE_HTTP_MALFORMED', { detail: 'Received no Host header. Send one.' })

/** Seconds after which a client that was turned away may try again. */
const RETRY_AFTER_SECONDS = 1

const OVERLOADED = problemAnswer('SLUICE_HTTP_OVERLOADED', {
  detail: `More is asked than can be answered in time. Nothing was counted; try again in ${RETRY_AFTER_SECONDS} second.`,
  headers: { 'Retry-After': String(RETRY_AFTER_SECONDS), 'Cache-Control': 'no-store' },
})

/** A request id from outside that may go into logs and headers. */
const REQUEST_ID = /^[\w.:-]{1,64}$/

/**
 * Answers requests by the endpoints that a router finds. The steps of a request that needs no waiting are made without a
 * promise.
 */
export class EndpointServer implements RequestServer {
  readonly #options: EndpointServerOptions
  readonly #streams = new Set<{ readonly end: () => void }>()
  #isLeaving = false

  constructor(options: EndpointServerOptions) {
    this.#options = options
  }

  serve(request: IncomingMessage, response: ServerResponse): void {
    const found = isHostMissing(request) ? NO_HOST : this.#options.route(request.url ?? '', request.method ?? '')
    if ('status' in found) {
      this.#refuse(request, response, found)
      return
    }
    const { target, params } = found
    const { lane } = target
    if (lane !== undefined && !lane.tryEnter()) {
      this.#refuse(request, response, OVERLOADED)
      return
    }
    if (lane !== undefined) response.once('close', leaving(lane))
    const exchange = new Exchange(request, response, params)
    if (target.admit === undefined) this.#takeParameters({ request, response, exchange, endpoint: target })
    else void this.#admit({ request, response, exchange, endpoint: target })
  }

  leave(): void {
    this.#isLeaving = true
  }

  endStreams(): void {
    for (const { end } of this.#streams) end()
  }

  async #admit(step: Step): Promise<void> {
    const { request, response, exchange, endpoint } = step
    try {
      const admitted = await endpoint.admit!(exchange)
      if (isAnswer(admitted)) {
        discardBody(request)
        this.#send(step, admitted)
        return
      }
      exchange.principal = admitted
    } catch (error) {
      discardBody(request)
      this.#fail(step, error)
      return
    }
    if (!response.destroyed) this.#takeParameters(step)
  }

  #takeParameters(step: Step): void {
    const { request, exchange, endpoint } = step
    const refusal = endpoint.refuseParameters?.(exchange)
    if (refusal !== undefined) {
      discardBody(request)
      this.#send(step, refusal)
    } else if (endpoint.body === undefined) this.#handle(step)
    else this.#takeBody(step, endpoint.body)
  }

  #takeBody(step: Step, { maxBytes, problemsOf }: BodyForm): void {
    readJsonBody(step.request, maxBytes, (body) => {
      if (!body.ok) {
        this.#send(step, body.answer)
        return
      }
      const problems = problemsOf?.(body.value) ?? []
      if (problems.length > 0) {
        this.#send(step, invalidRequest(problems))
        return
      }
      step.exchange.body = body.value
      this.#handle(step)
    })
  }

  #handle(step: Step): void {
    try {
      const answer = step.endpoint.handle(step.exchange)
      if ('status' in answer) this.#send(step, answer)
      else answer.then((later) => this.#send(step, later)).catch((error) => this.#fail(step, error))
    } catch (error) {
      this.#fail(step, error)
    }
  }

  #fail(step: Step, error: unknown): void {
    const { request, response, endpoint } = step
    const requestId = this.#requestId(request)
    this.#options.reportError(error, { operation: endpoint.name, requestId })
    if (response.headersSent) {
      // Half an answer must not look like a whole one.
      response.destroy()
      return
    }
    const detail = `The request may have been counted or not. The log of the service says more under "${requestId}"; try again later.`
    this.#write(response, problemAnswer('SLUICE_HTTP_INTERNAL', { detail, headers: { 'X-Request-Id': requestId } }))
  }

  #send({ request, response, endpoint }: Step, answer: Answer | StreamAnswer): void {
    if (endpoint.hasRequestId) response.setHeader('X-Request-Id', this.#requestId(request))
    if (!('stream' in answer)) this.#write(response, answer)
    else if (request.method === 'HEAD') this.#write(response, { ...answer, body: '' })
    else this.#stream(response, answer)
  }

  /** A connection ends with its stream, which nobody can say the end of when the server stops. */
  #stream(response: ServerResponse, answer: StreamAnswer): void {
    response.shouldKeepAlive = false
    const stream = { end: (): void => undefined }
    this.#streams.add(stream)
    stream.end = sendStream(response, answer, () => this.#streams.delete(stream))
  }

  #refuse(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
    discardBody(request)
    this.#write(response, answer)
  }

  #write(response: ServerResponse, answer: Answer): void {
    if (this.#isLeaving) response.shouldKeepAlive = false
    writeAnswer(response, answer)
  }

  #requestId(request: IncomingMessage): string {
    const given = request.headers['x-request-id']
    return typeof given === 'string' && REQUEST_ID.test(given) ? given : this.#options.newRequestId()
  }
}

/** A request on its way. */
interface Step {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly exchange: Exchange
  readonly endpoint: Endpoint
}

function isAnswer(admitted: Principal | Answer): admitted is Answer {
  return 'status' in admitted
}

function leaving(lane: InFlight): () => void {
  return () => lane.leave()
}

function isHostMissing(request: IncomingMessage): boolean {
  return request.headers.host === undefined && request.httpVersion === '1.1'
}
