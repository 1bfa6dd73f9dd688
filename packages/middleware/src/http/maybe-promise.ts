/** A value that is there at once, or later. What is there at once costs no turn of the event loop. */
export type MaybePromise<T> = T | Promise<T>

/** Whether a value is still to come. */
export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

/** Goes on with a value: at once when it is there. What is thrown on the way is thrown, or rejects. */
export function andThen<T, R>(value: MaybePromise<T>, go: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return isPromise(value) ? value.then(go) : go(value)
}
