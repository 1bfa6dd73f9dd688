import type { GatewayAnswer } from './problems.ts'

/** Headers of an upstream: buffers in turn from HTTP/1.1, an object from HTTP/2. */
export type UpstreamHeaders =
  | readonly (Buffer | string)[]
  | Readonly<Record<string, string | string[] | undefined>>
  | null
  | undefined

/** Hop-by-hop headers by the length of their name, so that most names are compared with nothing. */
const REMOVED: ReadonlyMap<number, readonly string[]> = byLength([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'transfer-encoding',
  'upgrade',
  'x-request-id',
])

/** Fields that tell one number each, so that there can be only one set of them. */
const LEGACY_FIELDS: ReadonlySet<string> = new Set([
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-ratelimit-reset-after',
])

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

  constructor(raw: UpstreamHeaders) {
    if (Array.isArray(raw)) {
      for (let index = 0; index < raw.length; index += 2) this.#add(textOf(raw[index]), textOf(raw[index + 1]))
    } else if (raw !== null && raw !== undefined) this.#addObject(raw as Readonly<Record<string, string | string[]>>)
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
      if (isOverruled && LEGACY_FIELDS.has(name.toLowerCase())) continue
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

  #add(name: string, value: string): void {
    const { length } = name
    const removed = REMOVED.get(length)
    if (removed !== undefined || length === 14 || length === 7 || length === 11) {
      const lower = name.toLowerCase()
      if (removed?.includes(lower) === true) {
        if (lower === 'connection')
          this.#connection = this.#connection === undefined ? value : `${this.#connection},${value}`
        return
      }
      if (lower === 'content-length') this.contentLength = Number(value)
      else if (lower === 'trailer') this.hasTrailer = true
      else if (lower === 'grpc-status') this.isTrailersOnly = true
    }
    // X or x
    if ((name.charCodeAt(0) | 0x20) === 0x78 && length >= 17 && LEGACY_FIELDS.has(name.toLowerCase())) {
      this.#legacyAt ??= []
      this.#legacyAt.push(this.list.length)
    }
    this.list.push(name, value)
  }

  #addObject(headers: Readonly<Record<string, string | string[]>>): void {
    for (const name in headers) {
      if (name.startsWith(':')) continue
      const value = headers[name]!
      if (typeof value === 'string') this.#add(name, value)
      else for (const each of value) this.#add(name, each)
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

function byLength(names: readonly string[]): ReadonlyMap<number, readonly string[]> {
  const found = new Map<number, string[]>()
  for (const name of names) found.set(name.length, [...(found.get(name.length) ?? []), name])
  return found
}

/** Headers are bytes: each becomes one character, and one byte again when it is written. */
function textOf(text: Buffer | string | undefined): string {
  return typeof text === 'string' ? text : (text as Buffer).toString('latin1')
}
