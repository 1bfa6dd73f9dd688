import type { Counter } from '@sluice/contract'

/** The titles of {@link counterCells}. */
export const COUNTER_TITLES: readonly string[] = ['used', 'limit', 'remaining', 'resets at', 'blocked until']

/** How a counter stands, in cells of a table. */
export function counterCells({ used, limit, remaining, resetAt, blockedUntil }: Counter): readonly string[] {
  return [countText(used), String(limit), countText(remaining), resetAt ?? '-', blockedUntil ?? '-']
}

/** A count for people; null is one that the store did not tell. */
export function countText(count: number | null): string {
  return count === null ? 'unknown' : String(count)
}
