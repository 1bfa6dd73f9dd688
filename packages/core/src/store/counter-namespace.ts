import type { Store } from './store.ts'

/** The namespace of remote stores that do not declare one. */
const UNKNOWN = ''

const spaces = new WeakMap<Store, string>()

/** Declares where a remote store counts. Stores with different strings never share a counter. */
export function noteSpace(store: Store, space: string): void {
  spaces.set(store, space)
}

/** Equal for two stores that may share counters: the store itself if it is local, else its declared string. */
export function spaceOf(store: Store): Store | string {
  return store.mode === 'sync' ? store : (spaces.get(store) ?? UNKNOWN)
}
