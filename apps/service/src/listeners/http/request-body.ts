import type { IncomingMessage } from 'node:http'

/** A request whose body is to be read. */
export interface IncomingBody {
  readonly request: IncomingMessage
  readonly head: RequestHead
}

/**
 * A whole body; `too-large` when it has more bytes than allowed; `dropped` when other bodies needed its room before it was
 * complete.
 */
export type ReadBody = Buffer | 'too-large' | 'dropped'

/** Bytes of a refused body that are still read, so that a client that is sending gets to see the answer. */
const MOST_DISCARDED_BYTES = 4_194_304

/** What a chunk takes in memory besides its bytes. Bodies that come byte by byte consist of little else. */
const CHUNK_OVERHEAD_BYTES = 256

/** A body of which a part has come. */
interface UnfinishedBody {
  heldBytes: number
  readonly drop: () => void
}

/**
 * Reads the bodies of requests.
 *
 * Invariant: unfinished bodies hold at most `mostBytes`, whoever sends how many of them. A part that does not fit makes the oldest
 * unfinished bodies go: a client that sends without pauses is done before it becomes the oldest, a client that holds bodies back
 * is the first to go. A body that arrives in one piece is never unfinished, so no number of slow bodies costs it anything.
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
   * `Content-Length`, or when that many have come. When the client goes away, `done` is not called: nobody waits for an answer.
   * A callback and not a promise, because every request passes here.
   */
  read({ request, head }: IncomingBody, maxBytes: number, done: (body: ReadBody) => void): void {
    const { contentLength } = head
    if (contentLength > maxBytes) {
      discardBody(request)
      done('too-large')
      return
    }
    const chunks: Buffer[] = []
    let size = 0
    let unfinished: UnfinishedBody | undefined
    const release = (): void => {
      if (unfinished !== undefined) this.#release(unfinished)
    }
    const giveUp = (reason: 'too-large' | 'dropped'): void => {
      request.off('data', onData)
      request.off('end', onEnd)
      release()
      chunks.length = 0
      discardBody(request)
      done(reason)
    }
    const onData = (chunk: Buffer): void => {
      size += chunk.length
      if (size > maxBytes) {
        giveUp('too-large')
        return
      }
      chunks.push(chunk)
      // Most bodies come in one piece. Without Content-Length nobody knows which piece is the last.
      if (size === contentLength) return
      if (unfinished === undefined) {
        unfinished = { heldBytes: 0, drop: () => giveUp('dropped') }
        request.once('close', release)
      }
      this.#hold(unfinished, chunk.length + CHUNK_OVERHEAD_BYTES)
    }
    const onEnd = (): void => {
      release()
      done(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
    }
    request.on('data', onData)
    request.on('end', onEnd)
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
 * Reads and drops what is left of a body that nobody wants, so that the connection can carry the next request; cuts the
 * connection when that is more than four megabytes.
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
 * Reads the headers of a request that every request is looked at for. `request.headers` knows them, too, but is made of all of
 * them when it is first asked for: that takes as long as everything else that is done here for a check.
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
