import type { Timers } from './clock-and-timers.ts'

/** The part of the platform's `AbortSignal` that is used. Every `AbortSignal` is one. */
export interface AbortSignalLike {
  readonly aborted: boolean
  readonly reason: unknown
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** `promise`, unless one of the signals aborts first; then rejects with its reason. Leaves no listener behind. */
export function orAborted<T>(promise: Promise<T>, signals: readonly (AbortSignalLike | undefined)[]): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  const stops: (() => void)[] = []
  for (const signal of signals) {
    if (signal === undefined) continue
    const listener = (): void => aborted.reject(signal.reason)
    if (signal.aborted) listener()
    signal.addEventListener('abort', listener)
    stops.push(() => signal.removeEventListener('abort', listener))
  }
  return Promise.race([aborted.promise, promise]).finally(() => {
    for (const stop of stops) stop()
  })
}

/** Resolves after `delayMs`, or rejects with the reason of a signal. Leaves neither timer nor listener behind. */
export function pause(
  timers: Timers,
  delayMs: number,
  signals: readonly (AbortSignalLike | undefined)[],
): Promise<void> {
  const over = Promise.withResolvers<void>()
  const cancel = timers.schedule(delayMs, over.resolve)
  return orAborted(over.promise, signals).finally(cancel)
}
