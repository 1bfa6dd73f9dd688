import type { Timers } from './timers.ts'

/** The part of the platform's `AbortSignal` that is used. Every `AbortSignal` is one. */
export interface AbortSignalLike {
  readonly aborted: boolean
  readonly reason: unknown
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** `promise`, unless the signal aborts first; then rejects with its reason. Leaves no listener behind. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignalLike | undefined): Promise<T> {
  if (signal === undefined) return promise
  if (signal.aborted) return Promise.reject(signal.reason)
  const aborted = Promise.withResolvers<never>()
  const listener = (): void => aborted.reject(signal.reason)
  signal.addEventListener('abort', listener)
  return Promise.race([promise, aborted.promise]).finally(() => signal.removeEventListener('abort', listener))
}

/** Resolves after `delayMs`, or rejects with the signal's reason. Leaves neither timer nor listener behind. */
export function pause(timers: Timers, delayMs: number, signal: AbortSignalLike | undefined): Promise<void> {
  const over = Promise.withResolvers<void>()
  const cancel = timers.schedule(delayMs, over.resolve)
  return orAborted(over.promise, signal).finally(cancel)
}
