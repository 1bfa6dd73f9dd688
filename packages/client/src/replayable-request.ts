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
 * Keeps what is needed to make a call of `fetch` again. The body of a `Request` is kept in memory until the end, because a
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

/** Whether a body can be read as often as one likes. */
function isReusable(body: NonNullable<RequestInit['body']>): boolean {
  if (typeof body === 'string' || ArrayBuffer.isView(body)) return true
  return [ArrayBuffer, Blob, FormData, URLSearchParams].some((reusable) => body instanceof reusable)
}
