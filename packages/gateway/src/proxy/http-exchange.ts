import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { backoffDelayMs } from '@sluice/runtime'
import type { Dispatcher } from 'undici'
import type { Attempt, AttemptOutcome } from '../upstreams/upstream.ts'
import type { ActiveConfig } from './active-config.ts'
import {
  breakOff,
  type ClientRequest,
  type ClientResponse,
  endResponse,
  endWithHead,
  isClosed,
  isHttp2,
  needsDrain,
  writeChunk,
  writeHead,
} from './client-response.ts'
import { type ClientSocket, connectionOf } from './connection.ts'
import { Exchange, type ExchangeParts } from './exchange.ts'
import { type GatewayAnswer, problemAnswer } from './problems.ts'
import { BodyTooLarge, ClientGone, RequestBody } from './request-body.ts'
import { answerHeaders, ResponseHeaders, type UpstreamHeaders } from './response-headers.ts'
import { canRetry, failureAnswer, RETRY_BACKOFF, RetriedStatus, TimeUp } from './upstream-failure.ts'

/** Holds the exchange of a response, so that listeners need no closure. */
const EXCHANGE: unique symbol = Symbol('sluice.exchange')

type OwnedResponse = ClientResponse & { [EXCHANGE]: HttpExchange }

/**
 * Responses that are tried again and are not longer are read to their end, so that the connection can be used again.
 */
const MOST_DISCARDED = 16_384

/** Bodies that are not longer are sent together with their headers. */
const MOST_AS_TEXT = 8192

/** Rest of a request body that is read and thrown away after an early answer, so that the connection can go on. */
const MOST_SKIPPED = 65_536

const TOO_LARGE = problemAnswer('too-large', 'The body is longer than this route takes. Send a shorter one.')
const CLIENT_TOO_SLOW = problemAnswer('timeout', 'The body did not arrive in time. Send it without pauses.')
const NOT_IN_TIME = problemAnswer('gateway-timeout', 'The time limit of the route is over.')

/** A request that is sent to an upstream by HTTP, and the handler of the response. */
export class HttpExchange extends Exchange implements Dispatcher.DispatchHandler {
  readonly #request: ClientRequest
  readonly #response: ClientResponse
  readonly #expectsContinue: boolean
  #attempt: Attempt | undefined
  #controller: Dispatcher.DispatchController | undefined
  #headers: string[] | undefined
  #target = ''
  #hasBody = false
  #contentLength: string | undefined
  /** Whether a byte of the current attempt may have reached the upstream. */
  #isSent = false
  #isContinued = false
  #tried: Set<string> | undefined
  #cancelBackoff: (() => void) | undefined
  #sentMs = 0
  #headersMs = 0
  #upstreamStatus = 0
  /** Whether the response is not for the client, because the request is tried again. */
  #isDiscarding = false
  /** Headers that may turn out to be the whole response, so that they end it. */
  #heldHead: string[] | undefined
  /** Bytes of the response that are still to come; -1 if unknown. */
  #leftBytes = -1
  /** Counts chunks in both directions: what stands still is idle. */
  #progress = 0
  #seenProgress = -1
  #idleSinceMs = 0

  constructor(parts: ExchangeParts, active: ActiveConfig, io: HttpIo) {
    const { request, response } = io
    const socket = isHttp2(response) ? response.stream.session!.socket : request.socket
    super(parts, active, {
      method: request.method!,
      url: request.url!,
      rawHeaders: request.rawHeaders,
      connection: connectionOf(socket as ClientSocket),
    })
    this.#request = request
    this.#response = response
    this.#expectsContinue = io.expectsContinue
    const owned = response as OwnedResponse
    owned[EXCHANGE] = this
    owned.on('close', onResponseClose)
  }

  get httpVersion(): string {
    return this.#request.httpVersion
  }

  get isGone(): boolean {
    return isClosed(this.#response)
  }

  answer(answer: GatewayAnswer): void {
    const { status } = answer
    this.status = status
    const headers = answerHeaders(answer, this.requestId)
    const { outcome } = this
    if (outcome?.allowed === true) for (const name in outcome.headers) headers.push(name, outcome.headers[name]!)
    this.#closeAfterBody(headers)
    const body = this.method === 'HEAD' ? '' : answer.body
    this.bytesOut = body.length
    writeHead(this.#response, status, headers)
    this.#response.end(body)
  }

  /** Told that the gateway stops: ends what would not end by itself. */
  leave(): void {
    // A response ends.
  }

  /** Protocol that the connection is to change to. */
  protected get upgrade(): string | null {
    return null
  }

  /** Takes the connection away from the response, which is not needed any more. */
  protected releaseResponse(socket: Socket): void {
    const response = this.#response as ServerResponse
    this.#headersMs = this.parts.monotonicMs() - this.#sentMs
    response.off('close', onResponseClose)
    response.detachSocket(socket)
  }

  /** Called when a connection that changed its protocol has ended. */
  protected upgradeOver(status: number): void {
    this.#finishAttempt({ kind: 'response', status, headersMs: this.#headersMs })
    this.over()
  }

  /** Called when the answer was sent, or the connection closed before. */
  closed(): void {
    this.#cancelBackoff?.()
    if (this.#attempt !== undefined) {
      const error = new ClientGone('the client closed the connection')
      if (this.#controller === undefined) this.#finishAttempt({ kind: 'cancelled' })
      else this.#controller.abort(error)
    }
    this.over()
  }

  check(nowMs: number): void {
    const { activeRoute } = this
    if (activeRoute === undefined) return
    const { timeouts } = activeRoute.route
    if (nowMs - this.startedMs >= timeouts.totalMs) this.#timeUp(NOT_IN_TIME, 'the time limit of the route is over')
    else if (this.#attempt !== undefined && this.#controller === undefined) {
      if (nowMs - this.#sentMs >= timeouts.connectMs + timeouts.headersMs) {
        this.#timeUp(NOT_IN_TIME, 'no connection to the upstream was free in time')
      }
    } else if (this.#isClientTurn()) {
      if (this.#progress !== this.#seenProgress) {
        this.#seenProgress = this.#progress
        this.#idleSinceMs = nowMs
      } else if (nowMs - this.#idleSinceMs >= timeouts.idleMs) this.#timeUp(CLIENT_TOO_SLOW, 'the client is idle')
    } else this.#seenProgress = -1
  }

  /** Continues a response that waited for the client. */
  drained(): void {
    this.#progress++
    this.#controller?.resume()
  }

  protected forward(): void {
    const { route } = this.activeRoute!
    const isRead = this.#readFraming(route.maxBodyBytes)
    if (!isRead) {
      this.answer(TOO_LARGE)
      return
    }
    this.#target = route.targetOf(this.url)
    this.#headers = this.active.requestHeaders.build({
      rawHeaders: this.rawHeaders,
      connection: this.connection,
      isTrustedPeer: this.isTrustedPeer,
      authority: this.authority,
      connectionHeader: this.connectionHeader,
      requestId: this.requestId,
      callerHeaders: this.caller?.upstreamHeaders,
      protocol: this.httpVersion,
      contentLength: this.#contentLength,
    })
    this.#try()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.isGone) controller.abort(new ClientGone('the client closed the connection'))
    else if (!this.#hasBody) this.#isSent = true
  }

  onBodySent(): void {
    this.#isSent = true
    this.#progress++
  }

  onRequestSent(): void {
    this.#isSent = true
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (status < 200) return
    this.#headersMs = this.parts.monotonicMs() - this.#sentMs
    this.#upstreamStatus = status
    const headers = new ResponseHeaders(controller.rawHeaders as UpstreamHeaders)
    if (this.#retriesStatus(status)) {
      this.#isDiscarding = true
      if (headers.contentLength < 0 || headers.contentLength > MOST_DISCARDED)
        controller.abort(new RetriedStatus(status))
      return
    }
    this.status = status
    const { list } = headers
    const { outcome } = this
    if (outcome !== undefined) headers.addLimits(outcome.headers)
    list.push('X-Request-Id', this.requestId)
    // What is left of the request would have to be read before the next one.
    if (this.#hasBody && !this.#request.complete && !isHttp2(this.#response)) list.push('Connection', 'close')
    if (status === 204) headers.remove('content-length')
    if (headers.hasTrailer && !this.#canTrail(headers)) headers.remove('trailer')
    this.#leftBytes = this.method === 'HEAD' ? -1 : headers.contentLength
    if (isHttp2(this.#response) && headers.isTrailersOnly) {
      this.#heldHead = list
      return
    }
    this.#writeHead(list)
  }

  /** Writes status and headers. False if they cannot be sent, such as a header with characters that have no bytes. */
  #writeHead(list: string[]): boolean {
    const { status } = this
    try {
      writeHead(this.#response, status, list)
    } catch (error) {
      this.status = 0
      this.parts.logger.warn('a response of an upstream cannot be passed on', {
        error: String(error),
        route: this.route,
      })
      this.#controller?.abort(error as Error)
      return false
    }
    // Headers wait for the first byte of the body, which for a stream of events may take long.
    if (this.#leftBytes !== 0) process.nextTick(flushHeaders, this.#response)
    return true
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isDiscarding || (this.#heldHead !== undefined && !this.#releaseHead())) return
    const response = this.#response
    const { length } = chunk
    this.bytesOut += length
    this.#progress++
    if (length === this.#leftBytes && !isHttp2(response)) {
      // The last chunk: sent together with the end.
      this.#leftBytes = 0
      // A short one as text: headers and body are then one string, written by one call without a vector.
      if (length <= MOST_AS_TEXT) response.end(chunk.toString('latin1'), 'latin1')
      else response.end(chunk)
      return
    }
    if (this.#leftBytes > 0) this.#leftBytes -= length
    if (!writeChunk(response, chunk)) {
      controller.pause()
      ;(response as OwnedResponse).once('drain', onResponseDrain)
    }
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    this.#finishAttempt({ kind: 'response', status: this.#upstreamStatus, headersMs: this.#headersMs })
    if (this.#isDiscarding) {
      this.#retry()
      return
    }
    if (this.#response.writableEnded) return
    if (this.#heldHead !== undefined) {
      endWithHead(this.#response, this.status, this.#heldHead)
      return
    }
    const trailers = controller.rawTrailers as UpstreamHeaders
    endResponse(this.#response, trailers ? new ResponseHeaders(trailers).list : undefined)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#failed(error)
  }

  #releaseHead(): boolean {
    const list = this.#heldHead!
    this.#heldHead = undefined
    return this.#writeHead(list)
  }

  /** Makes an attempt at an instance. */
  #try(): void {
    const { upstream, route } = this.activeRoute!
    const attempt = upstream.choose(this, this.#tried)
    if ('reason' in attempt) {
      this.isUnsent = this.attempts === 0
      this.answer(unavailableAnswer(attempt.reason, attempt.retryAfterSeconds))
      return
    }
    this.#attempt = attempt
    this.attempts++
    this.instance = attempt.instance
    this.#controller = undefined
    this.#isSent = false
    this.#isDiscarding = false
    this.#sentMs = this.parts.monotonicMs()
    const headers = this.#headers!
    headers[1] = route.host ?? this.authority ?? attempt.authority
    const options: Dispatcher.DispatchOptions = {
      path: this.#target,
      method: this.method,
      headers,
      body: this.#hasBody ? this.#newBody(route.maxBodyBytes) : null,
      headersTimeout: route.timeouts.headersMs,
      bodyTimeout: route.timeouts.idleMs,
      upgrade: this.upgrade,
    }
    try {
      attempt.dispatcher.dispatch(options, this)
    } catch (error) {
      this.#failed(error as Error)
    }
  }

  #newBody(maxBytes: number): RequestBody {
    this.#continue()
    const onBytes = (bytes: number): void => {
      this.bytesIn += bytes
      this.#progress++
    }
    return new RequestBody(this.#request as never, maxBytes, onBytes)
  }

  /** Asks a client that waits with its body to send it. */
  #continue(): void {
    if (!this.#expectsContinue || this.#isContinued) return
    this.#isContinued = true
    this.#response.writeContinue()
  }

  #failed(error: Error): void {
    if (this.#attempt === undefined) return
    if (error instanceof RetriedStatus) {
      this.#finishAttempt({ kind: 'response', status: error.status, headersMs: this.#headersMs })
      this.#retry()
      return
    }
    const isOurs = error instanceof ClientGone || error instanceof BodyTooLarge || error instanceof TimeUp
    this.#finishAttempt(isOurs && !isUpstreamLate(error) ? { kind: 'cancelled' } : { kind: 'failure' })
    if (this.isGone) return
    if (this.#response.headersSent) {
      this.parts.metrics.brokenOff(this)
      breakOff(this.#response)
      return
    }
    if (error instanceof BodyTooLarge) this.answer(TOO_LARGE)
    else if (error instanceof TimeUp) this.answer(error.answer)
    else {
      this.parts.metrics.upstreamFailed(this)
      if (this.#mayRetry(canRetry(error))) this.#retry()
      else this.#giveUp(error)
    }
  }

  #giveUp(error: Error): void {
    this.parts.logger.warn('an upstream failed', {
      error: error.message,
      route: this.route,
      instance: this.instance,
      requestId: this.requestId,
    })
    this.answer(failureAnswer(error))
  }

  #retriesStatus(status: number): boolean {
    const { statuses } = this.activeRoute!.route.retries
    return statuses.has(status) && isIdempotent(this.method) && this.#mayRetry(true)
  }

  /** Whether the request may be sent again, and the budget has a retry for it, which is taken. */
  #mayRetry(isRetryable: boolean): boolean {
    const { route, upstream } = this.activeRoute!
    const { attempts, budget } = route.retries
    if (!isRetryable || this.attempts > attempts) return false
    if (this.#isSent && (this.#hasBody || !isIdempotent(this.method))) return false
    return upstream.takeRetry(budget)
  }

  #retry(): void {
    if (this.isGone) return
    this.parts.metrics.retried(this)
    this.#tried ??= new Set()
    this.#tried.add(this.instance!)
    const random = (): number => this.parts.random.nextUint32() / 2 ** 32
    const delayMs = backoffDelayMs(this.attempts - 1, random, RETRY_BACKOFF)
    this.#cancelBackoff = this.parts.timers.schedule(delayMs, () => {
      this.#cancelBackoff = undefined
      this.#try()
    })
  }

  #finishAttempt(outcome: AttemptOutcome): void {
    const attempt = this.#attempt
    if (attempt === undefined) return
    this.#attempt = undefined
    this.#controller = undefined
    attempt.finish(outcome)
  }

  /** Ends an exchange that takes too long. */
  #timeUp(answer: GatewayAnswer, message: string): void {
    this.#cancelBackoff?.()
    const error = new TimeUp(message, answer)
    const controller = this.#controller
    if (controller !== undefined) controller.abort(error)
    else if (this.#attempt !== undefined) this.#failed(error)
    else if (this.#response.headersSent) breakOff(this.#response)
    else this.answer(answer)
  }

  /** Whether the client has to act: send more of its body, or read. The upstream is watched by its connection. */
  #isClientTurn(): boolean {
    if (needsDrain(this.#response) || this.#response.writableEnded) return true
    return this.#hasBody && !this.#request.complete
  }

  /** Reads how the body is framed. False if it is announced to be too long. */
  #readFraming(maxBytes: number): boolean {
    const length = this.header('content-length')
    if (typeof length === 'string') {
      this.#contentLength = length
      this.#hasBody = Number(length) > 0
      return Number(length) <= maxBytes
    }
    const request = this.#request
    this.#hasBody =
      'stream' in request ? !request.stream.endAfterHeaders : this.header('transfer-encoding') !== undefined
    return true
  }

  /** A connection whose request body was not read cannot be used again, unless the rest is short. */
  #closeAfterBody(headers: string[]): void {
    if (this.#request.complete || isHttp2(this.#response)) return
    const length = Number(this.header('content-length') ?? Number.NaN)
    const isShort = length - this.bytesIn <= MOST_SKIPPED
    if (!isShort && (this.#hasBody || this.header('transfer-encoding') !== undefined || length > 0)) {
      headers.push('Connection', 'close')
    }
  }

  #canTrail({ contentLength }: ResponseHeaders): boolean {
    return contentLength < 0 && this.method !== 'HEAD' && this.#request.httpVersion !== '1.0'
  }
}

/** A request and its response. */
export interface HttpIo {
  readonly request: ClientRequest
  readonly response: ClientResponse
  /** Whether the client waits for `100 Continue` with its body. */
  readonly expectsContinue: boolean
}

function onResponseClose(this: OwnedResponse): void {
  this[EXCHANGE].closed()
}

function onResponseDrain(this: OwnedResponse): void {
  this[EXCHANGE].drained()
}

/** Sends headers that no byte of a body has followed yet. */
function flushHeaders(response: ClientResponse): void {
  if (!(isHttp2(response) || response.writableEnded || response.destroyed)) response.flushHeaders()
}

function isIdempotent(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS' || method === 'PUT' || method === 'DELETE'
}

function isUpstreamLate(error: Error): boolean {
  return error instanceof TimeUp && error.answer === NOT_IN_TIME
}

function unavailableAnswer(reason: string, retryAfterSeconds: number): GatewayAnswer {
  const why = reason === 'no-capacity' ? 'All instances are busy.' : 'No instance is healthy.'
  const detail = `${why} Try again in ${retryAfterSeconds} ${retryAfterSeconds === 1 ? 'second' : 'seconds'}.`
  return problemAnswer('upstream-unavailable', detail, ['Retry-After', String(retryAfterSeconds)])
}
