/** Makes something of a value: at once when it is there, by promise when it is one. Stores that answer at once stay quick. */
export function whenKnown<T, R>(value: T | Promise<T>, use: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(use) : use(value)
}
