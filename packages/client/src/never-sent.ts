/** Codes that say that no connection was made. */
const NO_CONNECTION: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** Errors have causes, but not for ever. */
const DEEPEST_CAUSE = 8

/**
 * Whether an error of `fetch` shows that the request was never sent: there was no connection to send it on. False where that
 * is not known, as in browsers, which do not tell.
 */
export function wasNeverSent(error: unknown): boolean {
  let inner = error
  for (let depth = 0; depth < DEEPEST_CAUSE && inner instanceof Error; depth++) {
    const { code, syscall } = inner as { readonly code?: unknown; readonly syscall?: unknown }
    if (NO_CONNECTION.has(code) || syscall === 'connect' || syscall === 'getaddrinfo') return true
    // One error for each address that a name has.
    if (inner instanceof AggregateError) return inner.errors.length > 0 && inner.errors.every(wasNeverSent)
    inner = inner.cause
  }
  return false
}
