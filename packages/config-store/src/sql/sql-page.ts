import { SluiceError } from '@sluice/core'
import type { Page, PageRequest } from '../config-entries.ts'
import type { SqlValue } from './sql-driver.ts'

const MAX_ITEMS = 1000
const DEFAULT_ITEMS = 100

/** The validated page size. */
export function pageLimit({ limit = DEFAULT_ITEMS }: PageRequest): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_ITEMS) return limit
  throw new SluiceError('SLUICE_INVALID_OPTION', {
    problem: '"limit" of a page is invalid',
    received: limit,
    expected: `a whole number from 1 to ${MAX_ITEMS}`,
  })
}

/** The decoded `after` cursor, with parts of these types. Undefined for the first page. */
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
    problem: '"after" of a page is invalid',
    received: after,
    expected: 'the "next" of a page of the same list',
  })
}

/** Makes a page from `limit + 1` rows. `cursorOf`: the cursor after a row. */
export function pageOf<R, T>(
  rows: readonly R[],
  limit: number,
  { itemOf, cursorOf }: { readonly itemOf: (row: R) => T; readonly cursorOf: (row: R) => readonly SqlValue[] },
): Page<T> {
  const shown = rows.slice(0, limit)
  const last = rows.length > limit ? shown.at(-1) : undefined
  const next = last === undefined ? undefined : Buffer.from(JSON.stringify(cursorOf(last))).toString('base64url')
  return { items: shown.map(itemOf), next }
}

function parse(after: unknown): unknown {
  try {
    return JSON.parse(Buffer.from(String(after), 'base64url').toString())
  } catch {
    return undefined
  }
}
