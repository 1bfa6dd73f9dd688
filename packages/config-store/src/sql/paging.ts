import { SluiceError } from '@sluice/core'
import type { Page, PageRequest } from '../entries.ts'
import type { SqlValue } from './sql-driver.ts'

const MOST_ITEMS = 1000
const USUAL_ITEMS = 100

/** How many items a page may have. */
export function pageLimit({ limit = USUAL_ITEMS }: PageRequest): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= MOST_ITEMS) return limit
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: '"limit" of a page cannot be used',
    received: limit,
    expected: `a whole number from 1 to ${MOST_ITEMS}`,
  })
}

/** The place after which a page begins, in so many parts of these kinds; undefined for the first page. */
export function pageStart<T extends SqlValue>(
  { after }: PageRequest,
  kinds: readonly ('string' | 'number')[],
): readonly T[] | undefined {
  if (after === undefined) return undefined
  const parts = parse(after)
  if (Array.isArray(parts) && parts.length === kinds.length && parts.every((part, i) => typeof part === kinds[i])) {
    return parts as readonly T[]
  }
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: '"after" of a page cannot be used',
    received: after,
    expected: 'what a page of the same list gave as "next"',
  })
}

/**
 * A page out of rows of which one more was asked for than fits. `placeOf`: what the page after a row begins after.
 */
export function pageOf<R, T>(
  rows: readonly R[],
  limit: number,
  { itemOf, placeOf }: { readonly itemOf: (row: R) => T; readonly placeOf: (row: R) => readonly SqlValue[] },
): Page<T> {
  const shown = rows.slice(0, limit)
  const last = rows.length > limit ? shown.at(-1) : undefined
  const next = last === undefined ? undefined : Buffer.from(JSON.stringify(placeOf(last))).toString('base64url')
  return { items: shown.map(itemOf), next }
}

function parse(after: unknown): unknown {
  try {
    return JSON.parse(Buffer.from(String(after), 'base64url').toString())
  } catch {
    return undefined
  }
}
