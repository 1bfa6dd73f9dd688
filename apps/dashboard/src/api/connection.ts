import type { ReadonlySignal } from '@preact/signals'
import { signal } from '@preact/signals'

const reachable = signal(true)

/** Whether the last attempt to reach the service got an answer. */
export const isReachable: ReadonlySignal<boolean> = reachable

/** Notes whether an answer arrived. Every call and every stream does. */
export function noteReachable(isAnswered: boolean): void {
  reachable.value = isAnswered
}

/** Calls `listener` when the browser gets its network back; the function that is returned ends that. */
export function onNetworkBack(listener: () => void): () => void {
  globalThis.addEventListener('online', listener)
  return () => globalThis.removeEventListener('online', listener)
}

/** The URL of a path of the service. The base of the page is where a proxy put the service. */
export function serviceUrl(path: string): URL {
  return new URL(path.replace(/^\//, ''), document.baseURI)
}
