import { checkSignal } from '@sluice/core/options'
import { asClientError } from '../errors/client-option-check.ts'

/** A request that is about to be sent, without its body. */
export interface OutgoingRequest {
  /** In upper case. */
  readonly method: string
  readonly url: URL
  readonly headers: Headers
}

/** The same, with its signal. */
export interface FetchCall extends OutgoingRequest {
  readonly signal: AbortSignal | undefined
}

/**
 * The request that a call of `fetch` is about to send. Throws the error of `fetch` for an invalid address, method or
 * header, and `SLUICE_CLIENT_INVALID_OPTION` for an invalid signal.
 */
export function fetchCall(input: string | URL | Request, init: RequestInit = {}): FetchCall {
  const given = input instanceof Request ? input : undefined
  const { method = given?.method ?? 'GET', headers = given?.headers ?? {} } = init
  // Otherwise the wait would fail later, with another error than that of `fetch`.
  if (init.signal) asClientError(() => checkSignal(init.signal))
  // Created without the body, which can be read only once.
  const checked = new Request(given?.url ?? input, { method, headers })
  return {
    method: checked.method.toUpperCase(),
    url: new URL(checked.url),
    headers: checked.headers,
    signal: init.signal ?? given?.signal,
  }
}

/** Whether `value` is a valid first argument of `fetch`. */
export function isRequestInput(value: unknown): boolean {
  return typeof value === 'string' || value instanceof URL || value instanceof Request
}

/** A call of `fetch` that may be repeatable. */
export interface ReplayableRequest {
  /** Whether it can be repeated: a stream body can be read only once. */
  readonly canReplay: boolean
  /** The arguments for another call. */
  next(): readonly [input: string | URL | Request, init: RequestInit | undefined]
  /** Releases what was kept for another call. */
  end(): void
}

/**
 * Keeps what is needed to repeat a call of `fetch`. The body of a `Request` is kept in memory until the end, because a
 * `Request` can be sent only once.
 */
export function replayableRequest(input: string | URL | Request, init: RequestInit | undefined): ReplayableRequest {
  const { body } = init ?? {}
  const isGiven = body !== undefined && body !== null
  if (!isGiven && input instanceof Request && input.body !== null) {
    return {
      canReplay: true,
      next: () => [input.clone(), init],
      end: () => void input.body?.cancel().catch(() => undefined),
    }
  }
  return { canReplay: !isGiven || isReusable(body), next: () => [input, init], end: () => undefined }
}

/** Whether a body can be read repeatedly. */
function isReusable(body: NonNullable<RequestInit['body']>): boolean {
  if (typeof body === 'string' || ArrayBuffer.isView(body)) return true
  return [ArrayBuffer, Blob, FormData, URLSearchParams].some((reusable) => body instanceof reusable)
}
