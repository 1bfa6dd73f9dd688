import { checkSignal } from '@sluice/core/options'
import { asClientError } from '../errors/client-option-check.ts'

/** A request that is about to be sent, as far as it can be known without touching its body. */
export interface OutgoingRequest {
  /** In capitals. */
  readonly method: string
  readonly url: URL
  readonly headers: Headers
}

/** The same, with what ends it. */
export interface FetchCall extends OutgoingRequest {
  readonly signal: AbortSignal | undefined
}

/**
 * What a call of `fetch` is about to send. Throws what `fetch` would reject with for an address, method or header that
 * is none, and `SLUICE_CLIENT_INVALID_OPTION` for a signal that is none.
 */
export function fetchCall(input: string | URL | Request, init: RequestInit = {}): FetchCall {
  const given = input instanceof Request ? input : undefined
  const { method = given?.method ?? 'GET', headers = given?.headers ?? {} } = init
  // What waits for it would fail in other words than `fetch`, and later.
  if (init.signal) asClientError(() => checkSignal(init.signal))
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

/** A call of `fetch` that can perhaps be made more than once. */
export interface ReplayableRequest {
  /** Whether there is a second time: a body that is a stream is gone after the first. */
  readonly canReplay: boolean
  /** The arguments for one more call. */
  next(): readonly [input: string | URL | Request, init: RequestInit | undefined]
  /** Lets go of what was kept for a next call. */
  end(): void
}

/**
 * Keeps what is needed to make a call of `fetch` again. The body of a `Request` is kept in memory until the end,
 * because a `Request` can be sent only once.
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

/** Whether a body can be read as often as one likes. */
function isReusable(body: NonNullable<RequestInit['body']>): boolean {
  if (typeof body === 'string' || ArrayBuffer.isView(body)) return true
  return [ArrayBuffer, Blob, FormData, URLSearchParams].some((reusable) => body instanceof reusable)
}
