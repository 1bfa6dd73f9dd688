/**
 * Reads the wall clock: milliseconds since 1970-01-01T00:00:00Z, whole or fractional.
 *
 * It may stand still, jump forward and go back; every user of it in this package says what it does then.
 */
export type NowMs = () => number

/**
 * Waits `delayMs` milliseconds (zero or more, never less than asked), then resolves.
 *
 * When `signal` aborts, before or during the wait, it rejects at once with `signal.reason` and holds no timer and no
 * listener any more.
 */
export type Sleep = (delayMs: number, signal?: AbortSignal) => Promise<void>
