import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { constants } from 'node:http2'
import type { GrpcStatus } from './grpc-status.ts'
import { encodedMessage, GRPC_STATUS, GrpcError } from './grpc-status.ts'
import { FRAME_PREFIX_BYTES } from './protobuf.ts'

/** Largest message: as the largest body of `POST /json`. */
export const MAX_MESSAGE_BYTES = 1_048_576

/**
 * DATA frames of one message. Clients send frames of 16 KB, so that the largest message has 65. Each frame costs far
 * more to receive than its bytes.
 */
export const MAX_MESSAGE_FRAMES = 1024

const CONTENT_TYPE = 'application/grpc'

/** With a subtype or parameters. Other messages than protobuf, and gRPC-Web, are not understood. */
const ACCEPTED_TYPE = /^application\/grpc(?:\+proto)?(?:;|$)/

const OK_TRAILERS = Object.freeze({ 'grpc-status': '0' })
const TRAILERS_FOLLOW = Object.freeze({ waitForTrailers: true })
/** Names and values in turn, which Node takes faster than an object. A new array each time: Node adds to it. */
function okHeaders(): string[] {
  return [':status', '200', 'content-type', CONTENT_TYPE]
}

const NOTHING_FOLLOWS = Object.freeze({ endStream: true })

/** The HTTP status for a stream that is no call of gRPC; undefined if it is one. */
export function httpStatusOf(headers: IncomingHttpHeaders): number | undefined {
  if (headers[':method'] !== 'POST') return 405
  const type = headers['content-type'] ?? ''
  return type === CONTENT_TYPE || ACCEPTED_TYPE.test(type) ? undefined : 415
}

const TIMEOUT = /^(\d{1,8})([HMSmun])$/

const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 0.001, n: 0.000_001 }

/** The time that the client waits, in milliseconds; undefined if it does not say. */
export function timeoutMsOf(headers: IncomingHttpHeaders): number | undefined {
  const text = headers['grpc-timeout']
  if (text === undefined) return undefined
  const [, digits, unit] = TIMEOUT.exec(String(text)) ?? []
  if (digits === undefined || unit === undefined)
    throw new GrpcError('INVALID_ARGUMENT', 'grpc-timeout is malformed: expected up to 8 digits and one of H M S m u n')
  return Number(digits) * UNIT_MS[unit]!
}

/** Bytes that the unfinished messages of all calls of a thread hold: a bound for many connections together. */
export class MessageMemory {
  readonly #mostBytes: number
  #bytes = 0

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes
  }

  /** Throws {@link GrpcError} if it is too much. */
  take(bytes: number): void {
    if (this.#bytes + bytes > this.#mostBytes)
      throw new GrpcError('RESOURCE_EXHAUSTED', 'Too many unfinished messages: expected each to be sent without pauses')
    this.#bytes += bytes
  }

  release(bytes: number): void {
    this.#bytes -= bytes
  }
}

/** Puts the one message of a call together. Holds no more than was received. */
export class MessageReader {
  #parts: Buffer[] = []
  #bytes = 0
  #frames = 0

  /** Takes the content of a DATA frame. Throws {@link GrpcError} as soon as it is too much. */
  add(chunk: Buffer): void {
    this.#bytes += chunk.length
    this.#frames++
    if (this.#bytes > MAX_MESSAGE_BYTES + FRAME_PREFIX_BYTES)
      throw new GrpcError('RESOURCE_EXHAUSTED', `The message is too large: expected at most ${MAX_MESSAGE_BYTES} bytes`)
    if (this.#frames > MAX_MESSAGE_FRAMES)
      throw new GrpcError('RESOURCE_EXHAUSTED', `Too many DATA frames: expected at most ${MAX_MESSAGE_FRAMES}`)
    this.#parts.push(chunk)
  }

  /** The message, once all has come. Throws {@link GrpcError} unless it is one whole message. */
  finish(): Buffer {
    const all = this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts)
    this.#parts = []
    if (all.length === 0) throw new GrpcError('UNIMPLEMENTED', 'There is no message: expected one')
    if (all.length < FRAME_PREFIX_BYTES) throw incomplete()
    if (all[0] === 1)
      throw new GrpcError('UNIMPLEMENTED', 'The message is compressed: expected no compression (identity)')
    if (all[0] !== 0) throw new GrpcError('INTERNAL', 'The frame is malformed: expected 0 as its first byte')
    const length = all.readUInt32BE(1)
    if (length > MAX_MESSAGE_BYTES)
      throw new GrpcError('RESOURCE_EXHAUSTED', `The message is too large: expected at most ${MAX_MESSAGE_BYTES} bytes`)
    const end = FRAME_PREFIX_BYTES + length
    if (all.length < end) throw incomplete()
    if (all.length > end) throw new GrpcError('UNIMPLEMENTED', 'There is more than one message: expected one')
    return all.subarray(FRAME_PREFIX_BYTES)
  }
}

/** The message of a chunk that holds one whole message and nothing else, which is the usual case; else undefined. */
function wholeMessage(chunk: Buffer): Buffer | undefined {
  if (chunk.length < FRAME_PREFIX_BYTES || chunk.length > MAX_MESSAGE_BYTES || chunk[0] !== 0) return undefined
  return chunk.readUInt32BE(1) === chunk.length - FRAME_PREFIX_BYTES ? chunk.subarray(FRAME_PREFIX_BYTES) : undefined
}

function incomplete(): GrpcError {
  return new GrpcError('INTERNAL', 'The message is incomplete: expected as many bytes as its frame says')
}

/** What handles the calls of a listener. */
export interface GrpcCallHandler<Method> {
  readonly memory: MessageMemory
  /** The message of the client is complete. What it throws ends the call. */
  onMessage(message: Buffer, call: GrpcCall<Method>): void
  /** Called once, when the call has ended or the client is gone. */
  onEnd(status: GrpcStatus, call: GrpcCall<Method>): void
  /** Called once, when nothing is left of the call. */
  onClose(call: GrpcCall<Method>): void
  /** The error that the call ends with for something that was thrown. */
  errorOf(error: unknown): GrpcError
}

/** Where a stream keeps its call: the events of all streams share their callbacks. */
const CALL = Symbol('call')

type CallStream = ServerHttp2Stream & { [CALL]: GrpcCall | undefined }

/**
 * Takes from a closed stream what it refers to. Node's closed streams live until the next major collection, and each
 * minor one stops the thread to copy them: 0.7 KB per call, and without this 2.3 KB.
 */
function letGo(stream: ServerHttp2Stream): void {
  ;(stream as CallStream)[CALL] = undefined
  // First, so that it is not called for the others.
  stream.removeAllListeners('removeListener')
  stream.removeAllListeners()
}

/**
 * One call: reads the message of the client, and sends one message or several, and a status. It ends once. A message
 * that came whole is handled at once, without waiting for the end of the stream: what follows it is not read.
 */
export class GrpcCall<Method = unknown> {
  readonly headers: IncomingHttpHeaders
  readonly method: Method
  readonly startedMs: number
  /** Whether the message of the client is still being read. */
  isReading = true
  /** Its place among the open calls of the listener. */
  openAt = -1
  readonly #stream: ServerHttp2Stream
  readonly #handler: GrpcCallHandler<Method>
  #reader: MessageReader | undefined
  #takenBytes = 0
  #status: GrpcStatus | undefined

  constructor(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    { method, startedMs, handler }: GrpcCallParts<Method>,
  ) {
    this.headers = headers
    this.method = method
    this.startedMs = startedMs
    this.#stream = stream
    this.#handler = handler
    ;(stream as CallStream)[CALL] = this as GrpcCall
    stream.on('data', onData)
    stream.on('end', onEnd)
    stream.on('close', onClose)
  }

  /** Read where it is needed: it costs more than most of a call. */
  get remoteAddress(): string {
    return this.#stream.session?.socket.remoteAddress ?? ''
  }

  get hasEnded(): boolean {
    return this.#status !== undefined
  }

  /** Sends a message and keeps the call open. False if the client reads too slowly. */
  send(frame: Buffer): boolean {
    if (this.hasEnded) return true
    this.#respond()
    return this.#stream.write(frame)
  }

  /** Sends the last message and the status OK. */
  answer(frame: Buffer): void {
    if (this.hasEnded) return
    this.#respond()
    this.#end('OK')
    this.#stream.end(frame)
  }

  /** Ends the call with a status other than OK. */
  fail({ status, message }: GrpcError): void {
    if (this.hasEnded) return
    this.#end(status)
    const code = String(GRPC_STATUS[status])
    const text = encodedMessage(message)
    if (this.#stream.headersSent) {
      this.#stream.once('wantTrailers', () => this.#stream.sendTrailers({ 'grpc-status': code, 'grpc-message': text }))
      this.#stream.end()
    } else this.#stream.respond([...okHeaders(), 'grpc-status', code, 'grpc-message', text], NOTHING_FOLLOWS)
    this.endReading()
  }

  /** Nothing more is wanted of a client that is still sending: NO_ERROR says that the answer counts. */
  endReading(): void {
    if (!this.#stream.readableEnded) this.#stream.close(constants.NGHTTP2_NO_ERROR)
  }

  #respond(): void {
    if (this.#stream.headersSent) return
    this.#stream.respond(okHeaders(), TRAILERS_FOLLOW)
    this.#stream.on('wantTrailers', onTrailers)
  }

  /** Takes a chunk of the stream. */
  read(chunk: Buffer): void {
    if (!this.isReading) return
    try {
      const message = this.#reader === undefined ? wholeMessage(chunk) : undefined
      if (message === undefined) this.#keep(chunk)
      else this.#handle(message)
    } catch (error) {
      this.fail(this.#handler.errorOf(error))
    }
  }

  #keep(chunk: Buffer): void {
    this.#handler.memory.take(chunk.length)
    this.#takenBytes += chunk.length
    this.#reader ??= new MessageReader()
    this.#reader.add(chunk)
  }

  /** The client sends no more. */
  finishReading(): void {
    if (!this.isReading) return
    try {
      this.#handle((this.#reader ?? new MessageReader()).finish())
    } catch (error) {
      this.fail(this.#handler.errorOf(error))
    }
  }

  /** The stream is closed. */
  close(): void {
    this.#end('CANCELLED')
    this.#handler.onClose(this)
    letGo(this.#stream)
  }

  /** All messages were sent. */
  sendTrailers(): void {
    if (this.#status === 'OK') this.#stream.sendTrailers(OK_TRAILERS)
  }

  #handle(message: Buffer): void {
    this.#stopReading()
    this.#handler.onMessage(message, this)
  }

  #stopReading(): void {
    this.isReading = false
    if (this.#takenBytes > 0) this.#handler.memory.release(this.#takenBytes)
    this.#takenBytes = 0
    this.#reader = undefined
  }

  #end(status: GrpcStatus): void {
    if (this.#status !== undefined) return
    this.#status = status
    this.#stopReading()
    this.#handler.onEnd(status, this)
  }
}

/** What a call is handled with. */
export interface GrpcCallParts<Method> {
  readonly method: Method
  readonly startedMs: number
  readonly handler: GrpcCallHandler<Method>
}

// Listeners of all streams, so that a call needs no closures.

function onData(this: ServerHttp2Stream, chunk: Buffer): void {
  ;(this as CallStream)[CALL]?.read(chunk)
}

function onEnd(this: ServerHttp2Stream): void {
  ;(this as CallStream)[CALL]?.finishReading()
}

function onClose(this: ServerHttp2Stream): void {
  ;(this as CallStream)[CALL]?.close()
}

function onTrailers(this: ServerHttp2Stream): void {
  ;(this as CallStream)[CALL]?.sendTrailers()
}
