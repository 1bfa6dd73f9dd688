import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { constants } from 'node:http2'

/** A request of a client, of HTTP/1.1 or HTTP/2. */
export type ClientRequest = IncomingMessage | Http2ServerRequest

/** The response to it. */
export type ClientResponse = ServerResponse | Http2ServerResponse

export function isHttp2(response: ClientResponse): response is Http2ServerResponse {
  return 'stream' in response
}

/** Whether nothing can be sent any more. */
export function isClosed(response: ClientResponse): boolean {
  return isHttp2(response) ? response.stream.destroyed : response.closed || response.destroyed
}

/** Writes status and headers. `headers`: names and values in turn. */
export function writeHead(response: ClientResponse, status: number, headers: string[]): void {
  if (isHttp2(response)) response.writeHead(status, headerObject(headers))
  else response.writeHead(status, headers)
}

/**
 * Writes a response with a status below 200. `101` is for upgrades alone, and a client that waits for `100` gets it
 * from the gateway. Dropped if it cannot be written: the actual response follows.
 */
export function writeInterim(response: ClientResponse, status: number, headers: string[]): void {
  if (status <= 101) return
  try {
    ;(response as unknown as InformingResponse).writeInformation?.(status, headerObject(headers))
  } catch {
    // Such as a header with characters that have no bytes.
  }
}

/** Absent in older versions of Node. */
interface InformingResponse {
  readonly writeInformation?: (status: number, headers: Record<string, string | string[]>) => void
}

/** Writes a part of the body. False if the client has to read first. */
export function writeChunk(response: ClientResponse, chunk: Buffer): boolean {
  return (response as ServerResponse).write(chunk)
}

/** Whether the client has to read before more is written. */
export function needsDrain(response: ClientResponse): boolean {
  return isHttp2(response) ? response.stream.writableNeedDrain : response.writableNeedDrain
}

/** Ends the response, with trailers if there are any. */
export function endResponse(
  request: ClientRequest,
  response: ClientResponse,
  trailers: readonly string[] | undefined,
): void {
  if (trailers !== undefined && trailers.length > 0) {
    if (isHttp2(response)) response.addTrailers(headerObject(trailers))
    else if (response.chunkedEncoding) response.addTrailers(pairs(trailers))
  }
  response.end()
  if (isHttp2(response) && !request.complete) closeStream(response)
}

/** Most bytes of a body that are read after the answer to it. */
const MOST_LINGERING = 1_048_576

/**
 * Ends a response to a request whose body has not come yet. A connection that is closed while bytes arrive is reset,
 * and the client may lose the answer: so the rest of the body is read and thrown away for a while. The answer must
 * announce its length, so that the client need not wait.
 */
export function endAfterBody(request: ClientRequest, response: ClientResponse, body: string): void {
  if (isHttp2(response)) {
    response.end(body)
    closeStream(response)
    return
  }
  let left = MOST_LINGERING
  const end = (): void => void response.end()
  if (body !== '') response.write(body)
  else response.flushHeaders()
  request.on('end', end).on('close', end).on('error', end)
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left <= 0) end()
  })
}

/** Tells a client that the rest of its body is not needed, when the response was sent. */
function closeStream({ stream }: Http2ServerResponse): void {
  const close = (): void => stream.close(constants.NGHTTP2_NO_ERROR)
  if (stream.writableFinished) close()
  else stream.once('finish', close)
}

/** Sends a response that has headers only: over HTTP/2 its end is part of them, which gRPC asks for. */
export function endWithHead(response: ClientResponse, status: number, headers: readonly string[]): void {
  response.statusCode = status
  const fields = headerObject(headers)
  for (const name in fields) response.setHeader(name, fields[name]!)
  response.end()
}

/** Breaks the response off, so that no client takes it for complete. */
export function breakOff(response: ClientResponse): void {
  if (isHttp2(response)) response.stream.close(constants.NGHTTP2_INTERNAL_ERROR)
  // A body without a length and without chunks ends with the connection: only a reset tells that it was cut.
  else if (response.req.httpVersion === '1.0' && response.socket !== null) response.socket.resetAndDestroy()
  else response.destroy()
}

/** Repeated headers as lists: an object would lose all but the last. */
function headerObject(headers: readonly string[]): Record<string, string | string[]> {
  const found: Record<string, string | string[]> = Object.create(null)
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index]!.toLowerCase()
    const value = headers[index + 1]!
    const before = found[name]
    if (before === undefined) found[name] = value
    else if (typeof before === 'string') found[name] = [before, value]
    else before.push(value)
  }
  return found
}

function pairs(list: readonly string[]): [string, string][] {
  const found: [string, string][] = []
  for (let index = 0; index < list.length; index += 2) found.push([list[index]!, list[index + 1]!])
  return found
}
