import type { Decision } from '@sluice/core'

/** What became of a number of checks. */
export interface Tally {
  /** Admitted by the store. */
  allowed: number
  /** Denied by the store. */
  denied: number
  /** Decided without the store, and of these the ones that may have been charged. */
  failed: number
  unknown: number
  /** Checks that threw: there must be none. */
  errors: string[]
  /** The rules that denied. */
  deniedBy: string[]
  /** The answer that was waited for longest. */
  longestMs: number
}

export function emptyTally(): Tally {
  return { allowed: 0, denied: 0, failed: 0, unknown: 0, errors: [], deniedBy: [], longestMs: 0 }
}

/** Counts one decision. */
export function count(tally: Tally, { allowed, failure, rule }: Decision): void {
  if (failure !== undefined) {
    tally.failed++
    if (failure.charged === 'unknown') tally.unknown++
  } else if (allowed) {
    tally.allowed++
  } else {
    tally.denied++
    if (!tally.deniedBy.includes(rule)) tally.deniedBy.push(rule)
  }
}

/** Several tallies as one. */
export function total(tallies: readonly Tally[]): Tally {
  const all = emptyTally()
  for (const tally of tallies) {
    all.allowed += tally.allowed
    all.denied += tally.denied
    all.failed += tally.failed
    all.unknown += tally.unknown
    all.errors.push(...tally.errors)
    all.deniedBy = [...new Set([...all.deniedBy, ...tally.deniedBy])]
    all.longestMs = Math.max(all.longestMs, tally.longestMs)
  }
  return all
}
