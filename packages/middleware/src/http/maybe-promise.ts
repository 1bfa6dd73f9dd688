/** A value that is there at once, or later. What is there at once costs no turn of the event loop. */
export type Eventually<T> = T | Promise<T>

/** Whether a value is still to come. */
export function isLater<T>(value: Eventually<T>): value is Promise<T> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

/** Goes on with a value: at once when it is there. What is thrown on the way is thrown, or rejects. */
export function whenThere<T, R>(value: Eventually<T>, go: (value: T) => Eventually<R>): Eventually<R> {
  return isLater(value) ? value.then(go) : go(value)
}
