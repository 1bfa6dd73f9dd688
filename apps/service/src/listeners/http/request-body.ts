import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { FieldProblem } from '@sluice/contract'
import { pointerTo } from '@sluice/core/internal'
import type { Answer } from '../../operations/handler.ts'
import { problemAnswer } from '../../operations/problems.ts'

/** A request whose body is to be read. */
export interface IncomingBody {
  readonly request: IncomingMessage
  readonly head: RequestHead
}

/**
 * A whole body; `too-large` when it has more bytes than allowed; `dropped` when other bodies needed its room before it
 * was complete.
 */
export type ReadBody = Buffer | 'too-large' | 'dropped'

/** Bytes of a rejected body that are still read, so that a client that is sending gets to see the answer. */
const MOST_DISCARDED_BYTES = 4_194_304

/** What a chunk takes in memory besides its bytes. Bodies that come byte by byte consist of little else. */
const CHUNK_OVERHEAD_BYTES = 256

/** A body of which a part has come. */
interface UnfinishedBody {
  heldBytes: number
  readonly drop: () => void
}

/** A body to be read to its end. */
interface WholeBody {
  readonly request: IncomingMessage
  /** 0 when it is unknown. */
  readonly contentLength: number
  readonly maxBytes: number
  readonly done: (body: ReadBody) => void
}

/**
 * Reads the bodies of requests.
 *
 * Invariant: unfinished bodies hold at most `mostBytes`, however many clients send them. A part that does not fit drops
 * the oldest unfinished bodies: a client that sends without pauses is done before it becomes the oldest, and a client
 * that holds bodies back is dropped first. A body that arrives in one piece is never unfinished, so no number of slow
 * bodies costs it anything.
 */
export class BodyReader {
  readonly #mostBytes: number
  /** Oldest first. */
  readonly #unfinished = new Set<UnfinishedBody>()
  #heldBytes = 0

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes
  }

  /** Bytes of unfinished bodies, with what it takes to hold them. */
  get heldBytes(): number {
    return this.#heldBytes
  }

  /**
   * Hands the body of a request to `done`, or `too-large` as soon as it is known to have more than `maxBytes`: by its
   * `Content-Length`, or when that many have come. When the client disconnects, `done` is not called.
   * A callback and not a promise, because every request passes here.
   */
  read({ request, head }: IncomingBody, maxBytes: number, done: (body: ReadBody) => void): void {
    const { contentLength } = head
    if (contentLength > maxBytes) {
      discardBody(request)
      done('too-large')
      return
    }
    const whole = { request, contentLength, maxBytes, done }
    // Without a length, or without a body, the end has to be waited for.
    if (contentLength === 0) {
      request.on('data', this.#collector(whole))
      return
    }
    // Most bodies come with their heads: in the next tick they are there, and nothing but the end can follow. To read
    // them from the stream then, instead of having it deliver them by events, saves a sixth of the time that Node needs
    // for a request. The first call says that somebody reads; else Node would deliver what is left after the answer.
    request.read(0)
    process.nextTick(() => {
      const arrived: Buffer | null = request.read()
      if (arrived?.length === contentLength) {
        done(arrived)
        return
      }
      const collect = this.#collector(whole)
      if (arrived !== null) collect(arrived)
      request.on('data', collect)
    })
  }

  /** Collects the pieces of a body. The returned function takes the next one. */
  #collector({ request, contentLength, maxBytes, done }: WholeBody): (chunk: Buffer) => void {
    const chunks: Buffer[] = []
    let size = 0
    let isGivenUp = false
    let unfinished: UnfinishedBody | undefined
    const release = (): void => {
      if (unfinished !== undefined) this.#release(unfinished)
    }
    const giveUp = (reason: 'too-large' | 'dropped'): void => {
      isGivenUp = true
      request.off('end', onEnd)
      release()
      chunks.length = 0
      discardBody(request)
      done(reason)
    }
    const onEnd = (): void => {
      release()
      done(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
    }
    request.on('end', onEnd)
    return (chunk) => {
      if (isGivenUp) return
      size += chunk.length
      if (size > maxBytes) {
        giveUp('too-large')
        return
      }
      chunks.push(chunk)
      if (size === contentLength) return
      if (unfinished === undefined) {
        unfinished = { heldBytes: 0, drop: () => giveUp('dropped') }
        request.once('close', release)
      }
      this.#hold(unfinished, chunk.length + CHUNK_OVERHEAD_BYTES)
    }
  }

  #hold(body: UnfinishedBody, bytes: number): void {
    body.heldBytes += bytes
    this.#heldBytes += bytes
    this.#unfinished.add(body)
    for (const oldest of this.#unfinished) {
      if (this.#heldBytes <= this.#mostBytes) return
      oldest.drop()
    }
  }

  #release(body: UnfinishedBody): void {
    if (this.#unfinished.delete(body)) this.#heldBytes -= body.heldBytes
  }
}

/**
 * Reads and drops the rest of an unused body, so that the connection can carry the next request. Closes the connection
 * when that is more than four megabytes.
 */
export function discardBody(request: IncomingMessage): void {
  let size = 0
  request.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > MOST_DISCARDED_BYTES) request.destroy()
  })
}

/** The headers that every request is looked at for. */
export interface RequestHead {
  /** Host, the first when there are several; undefined when there is none. */
  readonly host: string | undefined
  /** Whether Host is there more than once. */
  readonly hasSeveralHosts: boolean
  /** Content-Type, the first when there are several; undefined when there is none. */
  readonly contentType: string | undefined
  /** Content-Length, which the parser has checked; 0 when there is none. */
  readonly contentLength: number
  /** Whether a Content-Encoding other than `identity` is said. */
  readonly isEncoded: boolean
}

/**
 * Reads the headers of a request that every request is looked at for. `request.headers` knows them, too, but is made of
 * all of them when it is first asked for: that takes as long as everything else that is done here for a check.
 */
export function readHead({ rawHeaders }: IncomingMessage): RequestHead {
  let host: string | undefined
  let hasSeveralHosts = false
  let contentType: string | undefined
  let contentLength = 0
  let isEncoded = false
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!
    // No two of them are equally long.
    switch (name.length) {
      case HOST.length:
        if (!isNamed(name, HOST)) break
        if (host === undefined) host = rawHeaders[index + 1]!
        else hasSeveralHosts = true
        break
      case TYPE.length:
        if (contentType === undefined && isNamed(name, TYPE)) contentType = rawHeaders[index + 1]!
        break
      case LENGTH.length:
        if (isNamed(name, LENGTH)) contentLength = Number(rawHeaders[index + 1])
        break
      case ENCODING.length:
        if (isNamed(name, ENCODING) && rawHeaders[index + 1]!.toLowerCase() !== 'identity') isEncoded = true
        break
      default:
    }
  }
  return { host, hasSeveralHosts, contentType, contentLength, isEncoded }
}

const HOST = 'Host'
const TYPE = 'Content-Type'
const LENGTH = 'Content-Length'
const ENCODING = 'Content-Encoding'

/** Most clients write it as it is written here. */
function isNamed(name: string, wanted: string): boolean {
  return name === wanted || name.toLowerCase() === wanted.toLowerCase()
}

/** The value in a body, or the answer to give instead. */
export type JsonBody = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly answer: Answer }

/** Maximum nesting of lists and objects. Schemas reject deeper bodies in any case. */
const DEEPEST = 64

const JSON_TYPE = /^application\/json[\t ]*(?:;[\t ]*charset[\t ]*=[\t ]*"?utf-?8"?[\t ]*)?;?$/i

/** Bodies up to this size are parsed quickly, whatever they contain. Every check is one. */
const SOON_PARSED_BYTES = 16_384

/**
 * The value in the bytes of a body, which are JSON in UTF-8. Where a name appears twice in an object, the last counts.
 */
export function parseJsonBody(body: Buffer): JsonBody {
  if (body.length > SOON_PARSED_BYTES && isTooDeep(body)) return TOO_DEEP
  const text = body.toString()
  // Bytes that are no UTF-8 become this character; only then is it worth looking at them once more.
  if (text.includes('\ufffd') && !isUtf8(body)) return notJson('bytes that are not UTF-8')
  try {
    return { ok: true, value: JSON.parse(text) }
  } catch (error) {
    return notJson(body.length === 0 ? 'an empty body' : `${body.length} bytes that are not JSON${placeOf(error)}`)
  }
}

/**
 * The answer to a body that is not said to be uncompressed `application/json`; undefined for one that is. The check
 * also keeps web pages out: a browser asks before it sends JSON to another origin.
 */
export function rejectType({ contentType, isEncoded }: RequestHead): Answer | undefined {
  if (contentType !== 'application/json' && !JSON_TYPE.test(contentType ?? '')) {
    return unsupported(`Received ${contentType === undefined ? 'no Content-Type' : 'another Content-Type'}.`)
  }
  return isEncoded ? unsupported('Received a Content-Encoding.') : undefined
}

function unsupported(received: string): Answer {
  return problemAnswer('SLUICE_HTTP_UNSUPPORTED_MEDIA_TYPE', {
    detail:
      `${received} Send the body as JSON in UTF-8, uncompressed, with the header ` +
      '"Content-Type: application/json".',
    headers: { Accept: 'application/json' },
  })
}

/** The answer to a body of more than `maxBytes`. */
export function tooLarge(maxBytes: number): Answer {
  const detail = `Received more than ${maxBytes} bytes, which is the most that is read here. Send a smaller body.`
  return problemAnswer('SLUICE_HTTP_TOO_LARGE', { detail })
}

const TOO_DEEP: JsonBody = {
  ok: false,
  answer: problemAnswer('SLUICE_HTTP_INVALID_REQUEST', {
    detail: `Received lists and objects nested more than ${DEEPEST} levels deep. No operation accepts such a body.`,
    errors: [{ path: '', received: `more than ${DEEPEST} levels`, expected: `at most ${DEEPEST} levels` }],
  }),
}

function notJson(received: string): JsonBody {
  const errors = [{ path: '', received, expected: 'a JSON text in UTF-8' }]
  const detail = `Received ${received}. Send one JSON object in UTF-8.`
  return { ok: false, answer: problemAnswer('SLUICE_HTTP_INVALID_JSON', { detail, errors }) }
}

/** Where the parser stopped, when it says so. Only the number is taken: the message quotes the body. */
function placeOf(error: unknown): string {
  const position = /at position (\d+)/.exec(String(error))?.[1]
  return position === undefined ? '' : `, from byte ${position} on`
}

/**
 * Members that an object of a body may have: many times what any form has names for, or callers have names of their
 * own.
 */
const MOST_MEMBERS = 1000

/** Entries that a list may have: more than the rules that fit into the largest body. */
const MOST_ENTRIES = 100_000

/**
 * The first part of a body that is larger than any form has room for; undefined when there is none. To compare a body
 * with its form is to find words for everything that is wrong with it: in a body that is made for it that takes
 * hundreds of times as long as this.
 */
export function oversizedPart(body: unknown): FieldProblem | undefined {
  return oversized(body, '', 0)
}

function oversized(value: unknown, path: string, depth: number): FieldProblem | undefined {
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return undefined
  const isList = Array.isArray(value)
  const names = isList ? undefined : Object.keys(value)
  const count = names?.length ?? (value as readonly unknown[]).length
  const [most, what] = isList ? [MOST_ENTRIES, 'a list'] : [MOST_MEMBERS, 'an object']
  if (count > most) return { path, received: `${what} of ${count}`, expected: `${what} of at most ${most}` }
  for (let index = 0; index < count; index++) {
    const name = names?.[index] ?? index
    const found = oversized((value as Readonly<Record<string | number, unknown>>)[name], '', depth + 1)
    if (found !== undefined) return { ...found, path: `${pointerTo(path, name)}${found.path}` }
  }
  return undefined
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const LIST_OPENS = 0x5b
const LIST_CLOSES = 0x5d
const OBJECT_OPENS = 0x7b
const OBJECT_CLOSES = 0x7d

/**
 * Whether the text of a body nests lists and objects deeper than any form does. Looks at bytes, because to parse such a
 * text takes tens of times as long as to read it. What is no JSON may get either answer.
 */
export function isTooDeep(text: Uint8Array): boolean {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const byte = text[at]
    if (byte === QUOTE) at = endOfString(text, at)
    else if (byte === LIST_OPENS || byte === OBJECT_OPENS) depth++
    else if (byte === LIST_CLOSES || byte === OBJECT_CLOSES) depth--
    if (depth > DEEPEST) return true
  }
  return false
}

/** Where a string ends that begins at `start`; the end of the text when it does not. */
function endOfString(text: Uint8Array, start: number): number {
  let at = start + 1
  while (at < text.length && text[at] !== QUOTE) at += text[at] === BACKSLASH ? 2 : 1
  return at
}
