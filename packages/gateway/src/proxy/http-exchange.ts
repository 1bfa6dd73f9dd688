import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import { problemAnswer } from '../http/problems.ts'
import { ResponseHeaders, type UpstreamHeaders } from '../http/response-headers.ts'
import type { Attempt, AttemptOutcome } from '../upstreams/upstream.ts'
import { ClientExchange } from './client-exchange.ts'
import { BodyTooLarge, ClientGone } from './request-body.ts'
import {
  canRetry,
  failureAnswer,
  isIdempotent,
  RetriedStatus,
  retryDelayMs,
  TimeUp,
  unavailableAnswer,
} from './upstream-failure.ts'

/**
 * Responses that are tried again and are not longer are read to their end, so that the connection can be used again.
 */
const MOST_DISCARDED = 16_384

const TOO_LARGE = problemAnswer('too-large', 'The body is longer than this route takes. Send a shorter one.')
const CLIENT_TOO_SLOW = problemAnswer('timeout', 'The body did not arrive in time. Send it without pauses.')
const NOT_IN_TIME = problemAnswer('gateway-timeout', 'The time limit of the route is over.')
const UNKNOWN_CODING = problemAnswer(
  'unknown-coding',
  'The only transfer coding known is "chunked". Name other codings in Content-Encoding.',
)

/** The side of an exchange that faces the upstream: makes attempts, and is the handler of their responses. */
export class HttpExchange extends ClientExchange implements Dispatcher.DispatchHandler {
  #attempt: Attempt | undefined
  #controller: Dispatcher.DispatchController | undefined
  #headers: string[] | undefined
  #target = ''
  /** Whether a byte of the current attempt may have reached the upstream. */
  #isSent = false
  #tried: Set<string> | undefined
  #cancelBackoff: (() => void) | undefined
  #sentMs = 0
  #headersMs = 0
  #upstreamStatus = 0
  /** Whether the response is not for the client, because the request is tried again. */
  #isDiscarding = false

  /** Protocol that the connection is to change to. */
  protected get upgrade(): string | null {
    return null
  }

  /** Called when the upstream agreed to change the protocol. */
  protected upgraded(): void {
    this.#headersMs = this.parts.monotonicMs() - this.#sentMs
  }

  /** Called when a connection that changed its protocol has ended. */
  protected upgradeOver(status: number): void {
    this.#finishAttempt({ kind: 'response', status, headersMs: this.#headersMs })
    this.over()
  }

  closed(): void {
    this.#cancelBackoff?.()
    if (this.#attempt !== undefined) {
      const error = new ClientGone('the client closed the connection')
      if (this.#controller === undefined) this.#finishAttempt({ kind: 'cancelled' })
      else this.#controller.abort(error)
    }
    this.over()
  }

  drained(): void {
    this.moved()
    this.#controller?.resume()
  }

  check(nowMs: number): void {
    const { activeRoute } = this
    if (activeRoute === undefined) return
    const { timeouts } = activeRoute.route
    const isQueued = this.#attempt !== undefined && this.#controller === undefined
    if (nowMs - this.startedMs >= timeouts.totalMs) {
      // A client that sends or reads slowly must not make an instance look broken.
      const isUpstreamLate = !(this.hasAnswered || this.isUploading)
      this.#timeUp(new TimeUp('the time limit of the route is over', NOT_IN_TIME, isUpstreamLate))
    } else if (isQueued && nowMs - this.#sentMs >= timeouts.connectMs + timeouts.headersMs) {
      this.#timeUp(new TimeUp('no connection to the upstream was free in time', NOT_IN_TIME, true))
    } else if (this.isClientIdle(nowMs, timeouts.idleMs)) {
      this.#timeUp(new TimeUp('the client is idle', CLIENT_TOO_SLOW, false))
    }
  }

  protected forward(): void {
    const { route } = this.activeRoute!
    const problem = this.readFraming(route.maxBodyBytes)
    if (problem !== undefined) {
      this.answer(problem === 'too-large' ? TOO_LARGE : UNKNOWN_CODING)
      return
    }
    this.#target = route.targetOf(this.url)
    this.#headers = this.active.requestHeaders.build({
      rawHeaders: this.rawHeaders,
      connection: this.connection,
      isTrustedPeer: this.isTrustedPeer,
      clientAddress: this.caller?.ip,
      authority: this.authority,
      connectionHeader: this.connectionHeader,
      requestId: this.requestId,
      callerHeaders: this.caller?.upstreamHeaders,
      protocol: this.httpVersion,
      contentLength: this.contentLength,
    })
    this.#try()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // It may have waited for a connection longer than the client.
    if (this.#attempt === undefined || this.isGone) {
      controller.abort(new ClientGone('the client closed the connection'))
      return
    }
    this.#controller = controller
    // HTTP/1.1 sends headers together with the first byte of a body.
    if (!this.hasBody || this.#attempt.protocol === 'http2') this.#isSent = true
  }

  onBodySent(): void {
    this.moved()
  }

  onRequestSent(): void {
    this.#isSent = true
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, read: IncomingHttpHeaders): void {
    const headers = new ResponseHeaders(controller.rawHeaders as UpstreamHeaders, read)
    if (status < 200) {
      this.sendInterim(status, headers)
      return
    }
    this.#headersMs = this.parts.monotonicMs() - this.#sentMs
    this.#upstreamStatus = status
    if (this.#retriesStatus(status)) {
      this.#isDiscarding = true
      const isShort = headers.contentLength >= 0 && headers.contentLength <= MOST_DISCARDED
      if (!isShort) controller.abort(new RetriedStatus(status))
      return
    }
    try {
      this.sendHead(status, headers)
    } catch (error) {
      // Such as a header with characters that have no bytes.
      this.#giveUpResponse(error as Error)
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!(this.#isDiscarding || this.sendChunk(chunk))) controller.pause()
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    this.#finishAttempt({ kind: 'response', status: this.#upstreamStatus, headersMs: this.#headersMs })
    if (this.#isDiscarding) this.#retry()
    else this.sendEnd(controller.rawTrailers as UpstreamHeaders)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#failed(error)
  }

  /** Makes an attempt at an instance. */
  #try(): void {
    const { upstream, route } = this.activeRoute!
    const attempt = upstream.choose(this, this.#tried)
    if ('reason' in attempt) {
      this.isUnsent = this.attempts === 0
      this.answer(unavailableAnswer(attempt))
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
      body: this.hasBody ? this.newBody(route.maxBodyBytes) : null,
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

  #failed(error: Error): void {
    if (this.#attempt === undefined) return
    if (this.#isDiscarding) {
      this.#finishAttempt({ kind: 'response', status: this.#upstreamStatus, headersMs: this.#headersMs })
      this.#retry()
      return
    }
    const isOfClient =
      error instanceof ClientGone || error instanceof BodyTooLarge || (error instanceof TimeUp && !error.isUpstreamLate)
    this.#finishAttempt(isOfClient ? { kind: 'cancelled' } : { kind: 'failure' })
    if (this.isGone) return
    if (this.hasAnswered) {
      if (!isOfClient) this.parts.metrics.brokenOff(this)
      this.breakResponse()
    } else if (error instanceof BodyTooLarge) this.answer(TOO_LARGE)
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

  #giveUpResponse(error: Error): void {
    this.status = 0
    const controller = this.#controller
    this.#finishAttempt({ kind: 'failure' })
    controller?.abort(error)
    this.#giveUp(error)
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
    // What was taken of a body is gone: it would be missing in the next attempt.
    const isSent = this.#isSent || this.bytesIn > 0
    if (isSent && (this.hasBody || !isIdempotent(this.method))) return false
    return upstream.takeRetry(budget)
  }

  #retry(): void {
    if (this.isGone) return
    const { parts } = this
    parts.metrics.retried(this)
    this.#tried ??= new Set()
    this.#tried.add(this.instance!)
    this.#cancelBackoff = parts.timers.schedule(retryDelayMs(this.attempts, parts.random), () => {
      this.#cancelBackoff = undefined
      try {
        this.#try()
      } catch (error) {
        this.fail('a request could not be sent again', error)
      }
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
  #timeUp(error: TimeUp): void {
    this.#cancelBackoff?.()
    this.#isDiscarding = false
    const controller = this.#controller
    if (controller !== undefined) controller.abort(error)
    else if (this.#attempt !== undefined) this.#failed(error)
    else if (this.hasAnswered) this.breakResponse()
    else this.answer(error.answer)
  }
}
