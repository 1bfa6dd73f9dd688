/** Who a request comes from. Every field was verified. */
export interface Caller {
  /** Address of the client: the connection, or what a trusted proxy says. Undefined if unknown. */
  readonly ip: string | undefined
  readonly user: string | undefined
  /** Fingerprint of the key, never the key. */
  readonly apiKey: string | undefined
  readonly tenant: string | undefined
  readonly tier: string | undefined
  /**
   * Headers that the upstream gets about the caller, names and values in turn, after `Identifier.removedHeaders` were
   * removed: identity headers, and credentials that are not those of the gateway. Default: none.
   */
  readonly upstreamHeaders?: readonly string[]
}

/** Why a request is answered without asking an upstream. */
export interface Unauthenticated {
  /** 401: not authenticated. 429: too many failures from this address. 503: no key of the issuer is known yet. */
  readonly status: 401 | 429 | 503
  /** For `WWW-Authenticate`; empty unless 401. */
  readonly challenge: string
  readonly detail: string
  /** For `Retry-After`. Default: none. */
  readonly retryAfterSeconds?: number
}

/** What identification needs to know of a request. */
export interface CallerRequest {
  readonly peerAddress: string | undefined
  /** Header by its lower-case name; values of repeated headers in order. */
  header(name: string): string | readonly string[] | undefined
}

/** Decides who calls. One decision for authentication and limits. */
export interface Identifier {
  /** Synchronous unless a token has to be verified for the first time. Does not fail. */
  identify(request: CallerRequest, auth: 'required' | 'optional' | 'none'): CallerAnswer | Promise<CallerAnswer>
  /**
   * Headers, in lower case, that are removed from every request: credentials of the gateway and its identity headers.
   */
  readonly removedHeaders: ReadonlySet<string>
  /** Loads keys. Resolves also when that fails: it is tried again. */
  start(): Promise<void>
  close(): Promise<void>
}

export type CallerAnswer = Caller | Unauthenticated

/** Whether a request is answered with 401, 429 or 503. */
export function isUnauthenticated(answer: CallerAnswer): answer is Unauthenticated {
  return 'status' in answer
}
