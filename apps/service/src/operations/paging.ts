import type { Page, PageRequest } from '@sluice/config-store'
import { invalidRequest } from './problems.ts'

/** What {@link PageRequest} promises when it names no limit. */
const USUAL_ITEMS = 100

/**
 * A page of a complete list. A page starts after the item that the previous one ended with, by name; if that item is
 * gone, the list must be read from the start.
 */
export function pageOfList<T>(
  items: readonly T[],
  nameOf: (item: T) => string,
  { after, limit = USUAL_ITEMS }: PageRequest,
): Page<T> {
  const start = after === undefined ? 0 : startAfter(items, nameOf, after)
  const shown = items.slice(start, start + limit)
  const last = shown.at(-1)
  const isLast = last === undefined || start + limit >= items.length
  return { items: shown, next: isLast ? undefined : Buffer.from(nameOf(last)).toString('base64url') }
}

function startAfter<T>(items: readonly T[], nameOf: (item: T) => string, after: string): number {
  const name = Buffer.from(after, 'base64url').toString()
  const index = items.findIndex((item) => nameOf(item) === name)
  if (index >= 0) return index + 1
  throw invalidRequest({
    path: '?after',
    received: 'not a place in this list',
    expected: 'what a page of the same list gave as "next"; begin again when the list was changed meanwhile',
  })
}
