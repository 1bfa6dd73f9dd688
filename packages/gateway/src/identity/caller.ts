/** Who a request comes from. Every field was verified. */
export interface Caller {
  /** Address of the client: the connection, or what a trusted proxy says. Undefined if unknown. */
  readonly ip: string | undefined
  readonly user: string | undefined
  /** Fingerprint of the key, never the key. */
  readonly apiKey: string | undefined
  readonly tenant: string | undefined
  readonly tier: string | undefined
}

/** A credential that was sent and is not valid, or none where one is required. */
export interface Unauthenticated {
  readonly status: 401
  /** For `WWW-Authenticate`. */
  readonly challenge: string
  readonly detail: string
}

/** What identification needs to know of a request. */
export interface CallerRequest {
  readonly peerAddress: string | undefined
  /** Header by its lower-case name; values of repeated headers in order. */
  header(name: string): string | readonly string[] | undefined
}

/** Decides who calls. One decision for authentication and limits. */
export interface Identifier {
  /** Synchronous unless a token has to be verified for the first time. */
  identify(request: CallerRequest, auth: 'required' | 'optional' | 'none'): CallerAnswer | Promise<CallerAnswer>
  /** Headers, in lower case, that are removed from every request: credentials of the gateway and its identity headers. */
  readonly removedHeaders: ReadonlySet<string>
  start(): Promise<void>
  close(): Promise<void>
}

export type CallerAnswer = Caller | Unauthenticated
