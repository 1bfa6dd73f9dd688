import type { DecisionRecord } from '@sluice/contract'

/** Rows that are kept in sight; older ones go. */
export const MOST_ROWS = 200

/** The sample with newer decisions: newest first, each once, at most {@link MOST_ROWS}. */
export function withNewer(
  known: readonly DecisionRecord[],
  newer: readonly DecisionRecord[],
): readonly DecisionRecord[] {
  const ids = new Set(known.map(({ id }) => id))
  const added = newer.filter(({ id }) => !ids.has(id))
  if (added.length === 0) return known
  return [...added, ...known].sort((one, other) => other.at - one.at).slice(0, MOST_ROWS)
}

/** What a row says about who was counted. */
export function countedText({ dimension, caller, hidden }: DecisionRecord): string {
  if (dimension === '') return 'no rule applied'
  if (dimension === 'global') return 'all callers'
  const shown = hidden.includes(dimension) && caller !== undefined ? `digest ${caller}` : caller
  return shown === undefined ? dimension : `${dimension} ${shown}`
}
