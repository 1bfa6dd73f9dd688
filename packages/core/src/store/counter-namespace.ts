import type { Store } from './store.ts'

/** Where stores outside the process count that do not say where. */
const UNKNOWN = ''

const spaces = new WeakMap<Store, string>()

/** Notes a text for where a store outside the process counts. Stores with different texts never share a counter. */
export function noteSpace(store: Store, space: string): void {
  spaces.set(store, space)
}

/**
 * What two stores have in common when they may keep the same counters: the store itself where it is a local one, else a
 * text.
 */
export function spaceOf(store: Store): Store | string {
  return store.mode === 'sync' ? store : (spaces.get(store) ?? UNKNOWN)
}
