import type { IncomingMessage } from 'node:http'
import type { RequestHead } from './request-head.ts'

/** A request whose body is to be read. */
export interface IncomingBody {
  readonly request: IncomingMessage
  readonly head: RequestHead
}

/** Bytes of a refused body that are still read, so that a client that is sending gets to see the answer. */
const MOST_DISCARDED_BYTES = 4_194_304

/**
 * Hands the body of a request to `done`, or `'too-large'` as soon as it is known to have more than `maxBytes`: by its
 * `Content-Length`, or when that many have come. Never holds more than `maxBytes` and one chunk. When the client goes away,
 * `done` is not called: nobody waits for an answer. A callback and not a promise, because every request passes here.
 */
export function readBody(
  { request, head }: IncomingBody,
  maxBytes: number,
  done: (body: Buffer | 'too-large') => void,
): void {
  if (head.contentLength > maxBytes) {
    discardBody(request)
    done('too-large')
    return
  }
  const chunks: Buffer[] = []
  let size = 0
  const onData = (chunk: Buffer): void => {
    size += chunk.length
    if (size <= maxBytes) {
      chunks.push(chunk)
      return
    }
    request.off('data', onData)
    request.off('end', onEnd)
    discardBody(request)
    done('too-large')
  }
  const onEnd = (): void => done(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
  request.on('data', onData)
  request.on('end', onEnd)
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
