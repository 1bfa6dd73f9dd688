import { checkSignal } from '@sluice/core/options'
import { toldByClient } from './option-check.ts'

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

/**
 * What a call of `fetch` is about to send. Throws what `fetch` would reject with for an address, method or header that is none, and
 * `SLUICE_CLIENT_INVALID_OPTION` for a signal that is none.
 */
export function outgoingCall(input: string | URL | Request, init: RequestInit = {}): OutgoingCall {
  const given = input instanceof Request ? input : undefined
  const { method = given?.method ?? 'GET', headers = given?.headers ?? {} } = init
  // What waits for it would fail in other words than `fetch`, and later.
  if (init.signal) toldByClient(() => checkSignal(init.signal))
  // Made without the body, which can be read only once.
  const checked = new Request(given?.url ?? input, { method, headers })
  return {
    method: checked.method.toUpperCase(),
    url: new URL(checked.url),
    headers: checked.headers,
    signal: init.signal ?? given?.signal,
  }
}

/** Whether `value` is what `fetch` is called with in the first place. */
export function isRequestInput(value: unknown): boolean {
  return typeof value === 'string' || value instanceof URL || value instanceof Request
}
