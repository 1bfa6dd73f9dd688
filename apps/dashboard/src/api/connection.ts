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

/**
 * Where the service is reached, with a slash at its end: the folder of the icon. A proxy may put it below any path, and
 * the page may be opened at any depth; the links in the page are the only ones who know. Read once, before the address
 * of the page changes.
 */
export const serviceRoot: URL = new URL('.', iconUrl())

function iconUrl(): string {
  if (typeof document === 'undefined') return 'http://localhost/'
  return document.querySelector<HTMLLinkElement>('link[rel="icon"]')?.href ?? document.baseURI
}

/** The URL of a path of the service. */
export function serviceUrl(path: string): URL {
  return new URL(path.replace(/^\//, ''), serviceRoot)
}
