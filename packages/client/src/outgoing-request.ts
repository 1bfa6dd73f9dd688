/** A request that is about to be sent, as far as it can be known without touching its body. */
export interface OutgoingRequest {
  /** In capitals. */
  readonly method: string
  readonly url: URL
  readonly headers: Headers
}

/** The same, with what ends it. */
export interface OutgoingCall extends OutgoingRequest {
  readonly signal: AbortSignal | undefined
}

/** What a call of `fetch` is about to send. Throws what `fetch` would reject with for an address, method or header that is none. */
export function outgoingCall(input: string | URL | Request, init: RequestInit = {}): OutgoingCall {
  const given = input instanceof Request ? input : undefined
  const { method = given?.method ?? 'GET', headers = given?.headers ?? {} } = init
  // Made without the body, which can be read only once.
  const checked = new Request(given?.url ?? input, { method, headers })
  return {
    method: checked.method.toUpperCase(),
    url: new URL(checked.url),
    headers: checked.headers,
    signal: init.signal ?? given?.signal,
  }
}
