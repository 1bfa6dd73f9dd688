/** A value or a promise of it. Synchronous values avoid a microtask per request. */
export type MaybePromise<T> = T | Promise<T>

/** Whether a value is a promise. */
export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

/** Applies `go` to a value, synchronously if possible. Errors throw, or reject. */
export function andThen<T, R>(value: MaybePromise<T>, go: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return isPromise(value) ? value.then(go) : go(value)
}
