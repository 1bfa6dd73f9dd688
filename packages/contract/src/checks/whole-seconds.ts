const MS_PER_SECOND = 1000

/**
 * Whole seconds that are not less than `ms`: callers who wait that long, or until then, never come too early.
 * 0 for what is past; `Infinity` stays.
 */
export function wholeSeconds(ms: number): number {
  return ms > 0 ? Math.ceil(ms / MS_PER_SECOND) : 0
}
