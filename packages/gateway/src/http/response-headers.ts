import type { IncomingHttpHeaders } from 'node:http'
import type { GatewayAnswer } from './problems.ts'
import {
  CONNECTION,
  CONTENT_LENGTH,
  GRPC_STATUS,
  type HeaderName,
  headerNameOf,
  LEGACY_LIMIT,
  REMOVE,
  readHeaderName,
  TRAILER,
} from './response-header-names.ts'

/** Headers of an upstream: buffers in turn from HTTP/1.1, an object from HTTP/2. */
export type UpstreamHeaders =
  | readonly (Buffer | string)[]
  | Readonly<Record<string, string | string[] | undefined>>
  | null
  | undefined

/** Headers of a response of an upstream, ready to be written. Reused for no second response. */
export class ResponseHeaders {
  /** Names and values in turn. */
  readonly list: string[] = []
  /** Value of `Content-Length`; -1 without one. */
  contentLength = -1
  /** Whether the upstream announces trailers. */
  hasTrailer = false
  /** Whether gRPC says how the call ended in the headers already: no message and no trailers follow. */
  isTrailersOnly = false
  #connection: string | undefined
  /** Where names of legacy rate limit fields of the upstream are in the list. Undefined without any. */
  #legacyAt: number[] | undefined

  /** `read`: the same headers, as undici has read them. */
  constructor(raw: UpstreamHeaders, read?: IncomingHttpHeaders) {
    if (Array.isArray(raw)) this.#addList(raw, read)
    else if (raw !== null && raw !== undefined) this.#addObject(raw as Readonly<Record<string, string | string[]>>)
    // Most upstreams name nothing in it.
    if (this.#connection !== undefined && this.#connection !== 'keep-alive') this.#removeNamed(this.#connection)
  }

  /**
   * Adds rate limit fields of the gateway. What an upstream announces is never loosened or lost:
   *
   * - `RateLimit` and `RateLimit-Policy` are lists: those of the gateway are added as further members.
   * - `X-RateLimit-*` hold one number: the set with fewer remaining units is announced. If that is the set of the
   *   gateway, the set of the upstream goes on as `X-Upstream-RateLimit-*`.
   */
  addLimits(own: Readonly<Record<string, string>>): void {
    const isOverruled = this.#legacyAt !== undefined && !this.#yields(own)
    for (const name in own) {
      if (isOverruled && headerNameOf(name).action === LEGACY_LIMIT) continue
      this.list.push(name, own[name]!)
    }
  }

  /** Removes a header that must not be sent to this client. `name` is in lower case. */
  remove(name: string): void {
    for (let index = this.list.length - 2; index >= 0; index -= 2) {
      if (this.list[index]!.length === name.length && this.list[index]!.toLowerCase() === name) {
        this.list.splice(index, 2)
      }
    }
  }

  #addList(raw: readonly (Buffer | string)[], read: IncomingHttpHeaders | undefined): void {
    for (let index = 0; index < raw.length; index += 2) {
      const bytes = raw[index]!
      const name = typeof bytes === 'string' ? headerNameOf(bytes) : readHeaderName(bytes)
      if (name.action === REMOVE) continue
      // A list, if the header is repeated.
      const value = read?.[name.lower]
      this.#add(name, typeof value === 'string' ? value : textOf(raw[index + 1]))
    }
  }

  #add({ text, action }: HeaderName, value: string): void {
    switch (action) {
      case REMOVE:
        return
      case CONNECTION:
        this.#connection = this.#connection === undefined ? value : `${this.#connection},${value}`
        return
      case CONTENT_LENGTH:
        this.contentLength = Number(value)
        break
      case TRAILER:
        this.hasTrailer = true
        break
      case GRPC_STATUS:
        this.isTrailersOnly = true
        break
      case LEGACY_LIMIT:
        this.#legacyAt ??= []
        this.#legacyAt.push(this.list.length)
        break
    }
    this.list.push(text, value)
  }

  #addObject(headers: Readonly<Record<string, string | string[]>>): void {
    for (const name in headers) {
      if (name.startsWith(':')) continue
      const value = headers[name]!
      const named = headerNameOf(name)
      if (typeof value === 'string') this.#add(named, value)
      else for (const each of value) this.#add(named, each)
    }
  }

  #removeNamed(connection: string): void {
    for (const token of connection.split(',')) {
      const name = token.trim().toLowerCase()
      if (name !== 'close' && name !== 'keep-alive' && name !== 'content-length') this.remove(name)
    }
  }

  /** Whether the fields of the gateway are the narrower ones; then those of the upstream are renamed. */
  #yields(own: Readonly<Record<string, string>>): boolean {
    const remaining = own['X-RateLimit-Remaining']
    if (remaining === undefined) return false
    const theirs = this.#remaining()
    if (theirs === undefined || theirs <= Number(remaining)) return false
    for (const index of this.#legacyAt!) this.list[index] = `X-Upstream-${this.list[index]!.slice(2)}`
    return true
  }

  /** Fewest units that the upstream announces. Undefined if that is no number: then its fields stand as they are. */
  #remaining(): number | undefined {
    let fewest: number | undefined
    for (const index of this.#legacyAt!) {
      if (this.list[index]!.toLowerCase() !== 'x-ratelimit-remaining') continue
      const value = this.list[index + 1]!.trim()
      if (!/^\d+$/.test(value)) return undefined
      fewest = Math.min(fewest ?? Number.POSITIVE_INFINITY, Number(value))
    }
    return fewest
  }
}

/** The headers of an answer that the gateway gives itself, with those of its limits. */
export function answerHeaders(answer: GatewayAnswer, requestId: string): string[] {
  return [...answer.headers, 'Content-Length', String(Buffer.byteLength(answer.body)), 'X-Request-Id', requestId]
}

/** Headers are bytes: each becomes one character, and one byte again when it is written. */
function textOf(text: Buffer | string | undefined): string {
  return typeof text === 'string' ? text : (text as Buffer).toString('latin1')
}
