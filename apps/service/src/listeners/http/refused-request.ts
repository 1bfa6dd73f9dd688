/** A request that was answered before it came to a handler. */
export interface RefusedRequest {
  /** `METHOD /path` of what was asked for; undefined where there is nothing of that kind, or it was no request at all. */
  readonly operation: string | undefined
  readonly status: number
  /** Address of the other end of the connection. */
  readonly remoteAddress: string
}
