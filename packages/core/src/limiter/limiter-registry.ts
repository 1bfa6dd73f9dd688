import type { Store } from '../store/store.ts'

/** Where a limiter counts, and under which names. */
export interface CountingPlace {
  readonly store: Store
  /** The names of its rules; none if they may change. */
  readonly rules: readonly string[]
}

const places = new WeakMap<object, CountingPlace>()

/** Records where `limiter`, of any kind, counts. The misuse checks of the middleware read it. */
export function notePlace(limiter: object, place: CountingPlace): void {
  places.set(limiter, place)
}

/** Where a limiter, a set of limiters or an engine counts; undefined for other objects. */
export function placeOf(limiter: object): CountingPlace | undefined {
  return places.get(limiter)
}
