import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type ClientSocket, connectionOf } from '../http/connection.ts'
import type { GatewayAnswer } from '../http/problems.ts'
import { answerHeaders, ResponseHeaders, type UpstreamHeaders } from '../http/response-headers.ts'
import type { ActiveConfig } from './active-config.ts'
import {
  breakOff,
  type ClientRequest,
  type ClientResponse,
  endAfterBody,
  endResponse,
  endWithHead,
  isClosed,
  isHttp2,
  needsDrain,
  writeChunk,
  writeHead,
  writeInterim,
} from './client-response.ts'
import { Exchange, type ExchangeParts } from './exchange.ts'
import { RequestBody } from './request-body.ts'

/** Holds the exchange of a response, so that listeners need no closure. */
const EXCHANGE: unique symbol = Symbol('sluice.exchange')

type OwnedResponse = ClientResponse & { [EXCHANGE]: ClientExchange }

/** Rest of a request body that is read and thrown away after an early answer, so that the connection can go on. */
const MOST_SKIPPED = 65_536

/** Bodies up to this length are copied into the text of the headers: one write costs more than the copy. */
const LONGEST_JOINED = 8192

/** Interim responses to one request that are passed on: they are held in memory while the client does not read. */
const MOST_INTERIMS = 16

/** A request and its response. */
export interface HttpIo {
  readonly request: ClientRequest
  readonly response: ClientResponse
  /** Whether the client waits for `100 Continue` with its body. */
  readonly expectsContinue: boolean
}

/** The side of an exchange that faces the client: reads its body, writes the response. */
export abstract class ClientExchange extends Exchange {
  protected hasBody = false
  protected contentLength: string | undefined
  readonly #request: ClientRequest
  readonly #response: ClientResponse
  readonly #expectsContinue: boolean
  #isContinued = false
  /** Headers that may turn out to be the whole response, so that they end it. */
  #heldHead: string[] | undefined
  /** Bytes of the response that are still to come; -1 if unknown. */
  #leftBytes = -1
  #interims = 0
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
    this.connection.inFlight++
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

  /** Called when the answer was sent, or the connection closed before. */
  abstract closed(): void

  /** Called when the client has read, so that more can be written. */
  abstract drained(): void

  answer(answer: GatewayAnswer): void {
    const { status } = answer
    this.status = status
    const headers = answerHeaders(answer, this.requestId)
    const { outcome } = this
    if (outcome?.allowed === true) for (const name in outcome.headers) headers.push(name, outcome.headers[name]!)
    const body = this.method === 'HEAD' ? '' : answer.body
    this.bytesOut = body.length
    const isUnread = !this.#isBodyShort()
    if (isUnread && !isHttp2(this.#response)) headers.push('Connection', 'close')
    writeHead(this.#response, status, headers)
    if (isUnread) {
      this.hasBody = true
      endAfterBody(this.#request, this.#response, body)
    } else this.#response.end(body)
  }

  /** Told that the gateway stops: ends what would not end by itself. */
  leave(): void {
    // A response ends.
  }

  protected get hasAnswered(): boolean {
    return this.#response.headersSent
  }

  /** Takes the connection away from the response, which is not needed any more. */
  protected releaseResponse(socket: Socket): void {
    const response = this.#response as ServerResponse
    response.off('close', onResponseClose)
    response.detachSocket(socket)
  }

  /** Whether the client has not sent all of its body yet. */
  protected get isUploading(): boolean {
    return this.hasBody && !this.#request.complete
  }

  /** Reads how the body is framed. Returns why it cannot be passed on: it is too long, or coded in an unknown way. */
  protected readFraming(maxBytes: number): 'too-large' | 'unknown-coding' | undefined {
    const length = this.header('content-length')
    if (typeof length === 'string') {
      this.contentLength = length
      this.hasBody = Number(length) > 0
      return Number(length) <= maxBytes ? undefined : 'too-large'
    }
    const request = this.#request
    if ('stream' in request) {
      this.hasBody = !request.stream.endAfterHeaders
      return undefined
    }
    const coding = this.header('transfer-encoding')
    this.hasBody = coding !== undefined
    // node:http undoes "chunked" alone: without its name, nobody would undo what is below it.
    return coding === undefined || coding.toString().toLowerCase() === 'chunked' ? undefined : 'unknown-coding'
  }

  /** The body for one attempt. A client that waits for `100 Continue` gets it. */
  protected newBody(maxBytes: number): RequestBody {
    if (this.#expectsContinue && !this.#isContinued) {
      this.#isContinued = true
      this.#response.writeContinue()
    }
    const onBytes = (bytes: number): void => {
      this.bytesIn += bytes
      this.#progress++
    }
    return new RequestBody(this.#request as never, maxBytes, onBytes)
  }

  /** Sends a response such as `103 Early Hints`, after which the actual one follows. */
  protected sendInterim(status: number, { list }: ResponseHeaders): void {
    if (this.isGone || this.hasAnswered || ++this.#interims > MOST_INTERIMS) return
    if (this.#request.httpVersion !== '1.0') writeInterim(this.#response, status, list)
  }

  /** Begins the response with these headers. Throws if they cannot be sent. */
  protected sendHead(status: number, headers: ResponseHeaders): void {
    this.status = status
    const { list } = headers
    if (this.outcome !== undefined) headers.addLimits(this.outcome.headers)
    list.push('X-Request-Id', this.requestId)
    const isSecond = isHttp2(this.#response)
    // What is left of the request would have to be read before the next one.
    if (!isSecond && this.isUploading) list.push('Connection', 'close')
    if (status === 204) headers.remove('content-length')
    if (headers.hasTrailer && !this.#canTrail(headers)) headers.remove('trailer')
    this.#leftBytes = this.method === 'HEAD' ? -1 : headers.contentLength
    if (isSecond && headers.isTrailersOnly) this.#heldHead = list
    else this.#writeHead(list)
  }

  /** Sends a part of the body. False if the client has to read first; `drained` is called then. */
  protected sendChunk(chunk: Buffer): boolean {
    if (this.#heldHead !== undefined) this.#releaseHead(this.#heldHead)
    const response = this.#response
    const { length } = chunk
    this.bytesOut += length
    this.#progress++
    if (length === this.#leftBytes && !isHttp2(response)) {
      // The end of the body: sent together with the end and, if it is short, in one piece with the headers.
      this.#leftBytes = 0
      if (length <= LONGEST_JOINED) response.end(chunk.toString('latin1'), 'latin1')
      else response.end(chunk)
      return true
    }
    if (this.#leftBytes > 0) this.#leftBytes -= length
    if (writeChunk(response, chunk)) return true
    ;(response as OwnedResponse).once('drain', onResponseDrain)
    return false
  }

  /** Ends the response. */
  protected sendEnd(trailers: UpstreamHeaders): void {
    if (this.#response.writableEnded) return
    if (this.#heldHead !== undefined) endWithHead(this.#response, this.status, this.#heldHead)
    else endResponse(this.#request, this.#response, trailers ? new ResponseHeaders(trailers).list : undefined)
  }

  /** Breaks the response off, so that no client takes it for complete. */
  protected breakResponse(): void {
    breakOff(this.#response)
  }

  /** Notes that something moves, for the idle time. */
  protected moved(): void {
    this.#progress++
  }

  /** Whether the client has let the idle time pass, when it was its turn to send or to read. */
  protected isClientIdle(nowMs: number, idleMs: number): boolean {
    const isItsTurn = needsDrain(this.#response) || this.#response.writableEnded || this.isUploading
    if (!isItsTurn) this.#seenProgress = -1
    else if (this.#progress !== this.#seenProgress) {
      this.#seenProgress = this.#progress
      this.#idleSinceMs = nowMs
    } else return nowMs - this.#idleSinceMs >= idleMs
    return false
  }

  #writeHead(list: string[]): void {
    writeHead(this.#response, this.status, list)
    // Headers wait for the first byte of the body, which for a stream of events may take long. Those of a short body go
    // out with it.
    if (this.#leftBytes < 0 || this.#leftBytes > LONGEST_JOINED) process.nextTick(flushHeaders, this.#response)
  }

  #releaseHead(list: string[]): void {
    this.#heldHead = undefined
    this.#writeHead(list)
  }

  /** Whether what is left of the request body is read soon, so that the connection can be used again. */
  #isBodyShort(): boolean {
    if (this.#request.complete) return true
    const length = this.header('content-length')
    if (typeof length === 'string') return Number(length) - this.bytesIn <= MOST_SKIPPED && !isHttp2(this.#response)
    const request = this.#request
    return 'stream' in request ? request.stream.endAfterHeaders : this.header('transfer-encoding') === undefined
  }

  #canTrail({ contentLength }: ResponseHeaders): boolean {
    return contentLength < 0 && this.method !== 'HEAD' && this.#request.httpVersion !== '1.0'
  }
}

function onResponseClose(this: OwnedResponse): void {
  const exchange = this[EXCHANGE]
  exchange.connection.inFlight--
  exchange.closed()
}

function onResponseDrain(this: OwnedResponse): void {
  this[EXCHANGE].drained()
}

/** Sends headers that no byte of a body has followed yet. */
function flushHeaders(response: ClientResponse): void {
  if (!(isHttp2(response) || response.writableEnded || response.destroyed)) response.flushHeaders()
}
