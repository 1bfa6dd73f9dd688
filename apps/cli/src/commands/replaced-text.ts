import type { Stored } from '@sluice/contract'

/** What a put took the place of, on a line of its own; empty when nothing was there. `say` tells it in short. */
export function replacedText<E>(replaced: Stored<E> | undefined, say: (entry: E) => string): string {
  if (replaced === undefined) return ''
  const { entry, revision, changedBy } = replaced
  return `\nReplaced: ${say(entry)} (revision ${revision}, by ${changedBy}).`
}

/** The same for a part of the rule set. */
export function replacedPartText(replaced: unknown): string {
  return replaced === undefined ? '' : `\nReplaced: ${JSON.stringify(replaced)}`
}
